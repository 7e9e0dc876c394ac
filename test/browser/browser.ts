import { afterAll, afterEach, beforeAll, expect } from 'bun:test'
import { type Browser, chromium, errors, type Page } from 'playwright-core'
import { type AiVersion, servePages } from './pages.ts'

/** What a page reads from its own address. */
export interface PageOptions {
  /** The threadbox server's URL: another origin than the page's. */
  server: string
  agent: string
  /** A browser's token. */
  token: string
  sandboxId: string
  threadId: string
  /** Sent with each message. */
  body?: object
  /** What `sendAutomaticallyWhen` is. */
  automatic?: 'tools' | 'approvals' | 'both'
  /** Whether it looks for answers that others give to what waits. */
  watches?: boolean
}

/** Longer than a busy machine takes, and shorter than a test may: what was missing is then said. */
const LIMIT_MS = 25_000

/** One Chromium for the file that calls this. A page with an error, or with a word on its console, fails its test. */
export function useBrowser() {
  let browser: Browser
  let web: Awaited<ReturnType<typeof servePages>>
  beforeAll(async () => {
    web = await servePages()
    // Without its own sandbox, which root cannot use: the pages are ours.
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', chromiumSandbox: false })
  })
  afterAll(async () => {
    await browser.close()
    await web.stop()
  })
  const opened: ChatPage[] = []
  afterEach(async () => {
    const closed = opened.splice(0)
    for (const { page } of closed) await page.context().close()
    expect(closed.flatMap(({ problems }) => problems)).toEqual([])
  })
  return {
    async open(version: AiVersion, options: PageOptions): Promise<ChatPage> {
      const context = await browser.newContext()
      const chat = new ChatPage(await context.newPage(), options)
      opened.push(chat)
      await chat.page.goto(`${web.urlOf(version)}#${encodeURIComponent(JSON.stringify(options))}`)
      return chat
    },
  }
}

/** The page in a browser profile of its own. */
export class ChatPage {
  /** How many requests it sent that chat: messages, edits, regenerations, continuations. */
  posts = 0
  /** Its errors and all that it wrote to its console. */
  readonly problems: string[] = []

  constructor(
    readonly page: Page,
    { server }: PageOptions,
  ) {
    page.setDefaultTimeout(LIMIT_MS)
    page.on('pageerror', error => void this.problems.push(`${error.stack}`))
    page.on('console', message => void this.problems.push(`${message.type()}: ${message.text()}`))
    page.on('request', request => {
      if (request.method() === 'POST' && request.url().startsWith(`${server}/v1/chat/`)) this.posts += 1
    })
  }

  async send(text: string): Promise<void> {
    await this.write(text)
    await this.press('Send')
  }

  write(text: string): Promise<void> {
    return this.page.getByLabel('Message').fill(text)
  }

  /** Presses the button of this name: the first, or one at the message with this index. */
  press(name: string, messageIndex?: number, index = 0): Promise<void> {
    const at = messageIndex === undefined ? this.page : this.page.locator('article').nth(messageIndex)
    return at.getByRole('button', { name, exact: true }).nth(index).click()
  }

  messageIds(): Promise<string[]> {
    return this.page.evaluate(`[...document.querySelectorAll('article')].map(({ dataset }) => dataset.id)`)
  }

  /** Resolves when no reply comes and the page shows just this, a line for each message: `assistant: Hi [Bash output-available: 1]`. */
  shows(...messages: string[]): Promise<void> {
    return this.#until('status: ready', ...messages)
  }

  /** Resolves when the reply has failed with this error, and the page shows just this. */
  fails(error: string, ...messages: string[]): Promise<void> {
    return this.#until('status: error', `error: ${error}`, ...messages)
  }

  /** Resolves when a reply comes and the page shows just this so far. */
  showsSoFar(...messages: string[]): Promise<void> {
    return this.#until('status: streaming', ...messages)
  }

  /** Resolves when the page shows just these messages, whatever it waits for. */
  says(...messages: string[]): Promise<void> {
    return this.#until(...messages)
  }

  async #until(...wanted: string[]): Promise<void> {
    const isWhole = wanted[0]?.startsWith('status: ')
    const read = isWhole ? shown : `${shown}.slice(1)`
    try {
      await this.page.waitForFunction(`JSON.stringify(${read}) === ${JSON.stringify(JSON.stringify(wanted))}`)
    } catch (error) {
      if (!(error instanceof errors.TimeoutError)) throw error
      expect({ shown: await this.page.evaluate(read), problems: this.problems }).toEqual({
        shown: wanted,
        problems: [],
      })
    }
  }
}

/** What is on the page: its status, its error, its messages. */
const shown = `[
  'status: ' + document.querySelector('main')?.dataset.status,
  ...[...document.querySelectorAll('[role=alert]')].map(({ textContent }) => 'error: ' + textContent),
  ...[...document.querySelectorAll('article')].map(
    ({ dataset, children }) =>
      [dataset.role + ':', ...[...children].map(({ dataset }) => dataset.shown).filter(Boolean)].join(' '),
  ),
]`
