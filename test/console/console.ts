import { afterAll, afterEach, beforeAll, expect } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page, type Request } from 'playwright-core'
import { Server, type ServerOptions, useServer } from '../support/server.ts'

/** Longer than a busy machine takes, and shorter than a test may: what was missing is then said. */
const LIMIT_MS = 25_000
const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/** Where the last screenshots go; without it none are made. */
const screenshots = process.env.THREADBOX_SCREENSHOTS

export interface OpenOptions {
  /** The console's own, as /sandboxes. */
  path?: string
  scheme?: 'light' | 'dark'
  width?: number
  /** Default: signed in with the server's key. */
  isSignedOut?: boolean
}

/**
 * The built executable and one Chromium for the file that calls this. A page fails its test by an error, a word on its console,
 * a broken content policy, a dialog, a page that it opens, or a request to another host.
 */
export function useConsole(given: ServerOptions | Server = {}) {
  const server = given instanceof Server ? given : useServer(given)
  let browser: Browser
  beforeAll(async () => {
    // Without its own sandbox, which root cannot use: the pages are ours.
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', chromiumSandbox: false })
  })
  afterAll(() => browser.close())
  const opened: ConsolePage[] = []
  afterEach(async () => {
    const closed = opened.splice(0)
    for (const { page } of closed) await page.context().close()
    expect(closed.flatMap(({ problems }) => problems)).toEqual([])
  })
  return {
    server,
    async open({ path = '/', scheme = 'light', width = 1280, isSignedOut = false }: OpenOptions = {}) {
      // Without transitions: what is measured in the middle of one is neither look.
      const settings: BrowserContextOptions = {
        colorScheme: scheme,
        reducedMotion: 'reduce',
        viewport: { width, height: 800 },
      }
      const context = await browser.newContext({ ...settings, baseURL: server.url })
      const opening = new ConsolePage(await context.newPage(), server)
      opened.push(opening)
      if (!isSignedOut) await opening.signIn()
      await opening.page.goto(path)
      return opening
    },
  }
}

/** A port that nobody has now. */
export function freePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  listener.stop(true)
  return listener.port
}

/** The console in a browser profile of its own. */
export class ConsolePage {
  /** Its errors, all that it wrote to its console, what it opened, and requests to other hosts. */
  readonly problems: string[] = []
  /** Words that its console may say in this test. */
  readonly expected: RegExp[] = []

  readonly #asking = new Set<Request>()

  constructor(
    readonly page: Page,
    readonly server: Server,
  ) {
    page.setDefaultTimeout(LIMIT_MS)
    const add = (problem: string) => {
      if (!this.expected.some(each => each.test(problem))) this.problems.push(problem)
    }
    page.on('pageerror', error => add(`${error.stack}`))
    page.on('console', message => {
      // Chromium says so of every answer that is an error, also of those that the page shows.
      if (!/^Failed to load resource: the server responded with a status of 401/.test(message.text()))
        add(`${message.type()}: ${message.text()} ${message.location().url}`)
    })
    page.on('dialog', dialog => {
      add(`a dialog: ${dialog.type()} ${dialog.message()}`)
      dialog.dismiss().catch(() => {})
    })
    page.on('request', request => {
      if (!/\/v1\/events|\/output/.test(request.url())) this.#asking.add(request)
    })
    page.on('requestfinished', request => void this.#asking.delete(request))
    page.on('requestfailed', request => void this.#asking.delete(request))
    page.on('popup', popup => add(`a new page: ${popup.url()}`))
    page.on('request', request => {
      const url = new URL(request.url())
      if (/^https?:|^wss?:/.test(url.protocol) && url.host !== new URL(server.url).host) add(`request to ${url.host}`)
    })
  }

  /** Resolves when the page has asked for nothing for a few frames, beside the events that it follows. */
  async settled(): Promise<void> {
    for (let quiet = 0; quiet < 5; quiet++) {
      if (this.#asking.size > 0) quiet = 0
      await this.page.evaluate('new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve, 20)))')
    }
  }

  /** As the page itself does, without showing it. */
  async signIn(): Promise<void> {
    const { url, key } = this.server
    const answer = await this.page.context().request.post('/v1/session', { data: { key }, headers: { origin: url } })
    expect(answer.status()).toBe(201)
  }

  /** What axe finds against WCAG 2.2 AA, by rule and element. */
  async accessibility(): Promise<string[]> {
    await this.page.evaluate(await Bun.file(axe).text())
    const rules = {
      runOnly: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] },
    }
    const { violations } = await this.page.evaluate<any>(`axe.run(document, ${JSON.stringify(rules)})`)
    return violations.flatMap((each: any) => each.nodes.map((node: any) => `${each.id}: ${node.html}`))
  }

  /** Keeps a picture for a person to look at, when pictures are asked for. */
  async picture(name: string): Promise<void> {
    if (!screenshots) return
    mkdirSync(screenshots, { recursive: true })
    await this.page.screenshot({ path: join(screenshots, `${name}.png`), animations: 'disabled' })
  }
}
