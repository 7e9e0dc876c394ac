import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findServerProcess } from '../../src/cli/running-servers.ts'
import { digestOf } from '../../src/guest/host/install.ts'
import { processesNamed } from '../support/leftovers.ts'
import { buildNext, NEXT_FAULT, NEXT_VERSION } from '../support/next-build.ts'
import { executable as built, command, patiently, Server, temporaryDirectory } from '../support/server.ts'
import { eventsOf, textIn } from '../support/sse.ts'
import { until } from '../support/until.ts'
import { freePort } from './free-port.ts'

patiently()

const root = temporaryDirectory()
const at = (name: string) => join(root, name)
const executable = at('bin/threadbox')
let next = ''
let nextSum = ''
let builtVersion = ''

beforeAll(async () => {
  mkdirSync(at('bin'))
  mkdirSync(at('next'))
  next = await buildNext(at('next'))
  nextSum = await digestOf(next)
  builtVersion = (await command(['version'])).stdout.trim()
})
afterAll(() => rmSync(root, { recursive: true }))

/** A server that runs from an executable of its own. */
async function open(env: Record<string, string> = {}): Promise<Server> {
  rmSync(at('bin'), { recursive: true })
  mkdirSync(at('bin'))
  copyFileSync(built, executable)
  const port = freePort()
  return await new Server({ command: [executable], flags: ['--spares', '0'], port, env }).start()
}

const upgrade = (server: Server, ...args: string[]) =>
  command(['upgrade', ...args, '--data-dir', server.dataDirectory], { command: [executable] })
const versionOf = async (server: Server) => (await server.ask('GET', '/health')).body.version
const files = () => readdirSync(at('bin')).sort()
const copyOf = (server: Server) =>
  readdirSync(server.dataDirectory).filter(name => /^threadbox\.db\.(before|newer)-\d+$/.test(name))

/** A server that the command has started is no child of this test. */
async function endOther(server: Server): Promise<void> {
  const pid = findServerProcess(server.dataDirectory)
  if (pid) process.kill(pid, 'SIGTERM')
  await until(() => findServerProcess(server.dataDirectory) === undefined)
  await server.ended()
}

describe('an upgrade', () => {
  test('under a running chat loses nothing, keeps what runs in sandboxes, and can be taken back', async () => {
    await using server = await open()
    const { pid } = server
    const id = await server.sandbox()
    const word = `9${Date.now()}`
    await server.exec(id, `sleep ${word} >/dev/null 2>&1 &`)
    const reply = await server.chat('/slow 30', { sandboxId: id })
    const threadId = reply.headers.get('x-thread-id')
    const seen: { id: string; data: any }[] = []
    const reader = (async () => {
      let stream = reply
      for (;;) {
        try {
          for await (const { id: eventId, data } of eventsOf(stream)) {
            if (data === '[DONE]') return
            if (!data.type) continue
            seen.push({ id: eventId ?? '', data })
            // The connection of this one is cut in the middle.
            if (seen.length === 5) break
          }
        } catch {
          // The old server is gone.
        }
        stream = await resume(server, `${id}/stream?threadId=${threadId}`, seen.at(-1)?.id ?? '')
      }
    })()
    await until(() => seen.length > 5)

    const done = await upgrade(server, next, '--sha256', nextSum)
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(done.stdout).toMatch(/^threadbox 99\.0\.0 is ready, \d+ ms after the restart\. The former one is \S+\n$/)
    await reader
    expect(
      textIn(seen.map(({ data }) => data))
        .trim()
        .split(/\s+/).length,
    ).toBe(30)
    expect(new Set(seen.map(({ id }) => id)).size).toBe(seen.length)
    expect([await versionOf(server), findServerProcess(server.dataDirectory)]).toEqual([NEXT_VERSION, pid])
    expect(processesNamed(word).length).toBe(1)
    expect((await server.exec(id, 'echo out')).stdout).toBe('out\n')
    expect(files()).toEqual(['threadbox', 'threadbox.previous'])
    expect((await upgrade(server, next)).stdout).toContain('is this version already')

    const refused = await upgrade(server, '--back')
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('--with-database')])
    expect(await versionOf(server)).toBe(NEXT_VERSION)
    await server.ask('POST', `/v1/sandboxes/${id}/threads`, { name: 'later' })
    const back = await upgrade(server, '--back', '--with-database')
    expect([back.code, back.stdout]).toEqual([0, expect.stringContaining(`threadbox ${builtVersion} is ready`)])
    expect(copyOf(server).length).toBe(2)
    expect((await server.ask('GET', `/v1/sandboxes/${id}/threads`)).body.length).toBe(1)
    expect(processesNamed(word).length).toBe(1)
    await endOther(server)
  })

  test.each([
    ['exits', /since the new one ended before it was ready/],
    ['refuses', /since the new one is not ready: it refuses/],
  ])('to a version that %s goes back by itself, with the database as it was', async (fault, words) => {
    await using server = await open({ [NEXT_FAULT]: fault })
    const id = await server.sandbox()
    const accepted: number[] = []
    const made = new Set<string>()
    let isOver = false
    // Somebody goes on asking for what a server would write down.
    const asking = (async () => {
      while (!isOver) {
        const answer = await server.ask('POST', '/v1/tokens', { agent: 'echo', userId: 'u' }).catch(() => undefined)
        const key = await server.ask('POST', `/v1/sandboxes/${id}/threads`, { name: 'asked' }).catch(() => undefined)
        for (const each of [answer, key]) if (each) accepted.push(each.status)
        if (key && key.status < 300) made.add(key.body.id)
        await Bun.sleep(100)
      }
    })()
    const before = await digestOf(executable)
    const { code, stderr } = await upgrade(server, next, '--ready-within', fault === 'exits' ? '60' : '6')
    isOver = true
    await asking
    expect([code, stderr]).toEqual([1, expect.stringMatching(words)])
    expect(stderr).toEndWith('It runs.\n')
    expect([await digestOf(executable), await versionOf(server)]).toEqual([before, builtVersion])
    expect(copyOf(server).length).toBe(2)
    const kept = await command(['audit', 'list', '--action', 'upgrade', '--json', '--data-dir', server.dataDirectory])
    const row = { actor: { command: 'upgrade' }, detail: { from: builtVersion, to: NEXT_VERSION, sha256: nextSum } }
    expect(JSON.parse(kept.stdout)).toMatchObject([
      { ...row, outcome: 'failed' },
      { ...row, outcome: 'begun' },
    ])
    const listed = (await server.ask('GET', `/v1/sandboxes/${id}/threads`)).body.map(({ id }: { id: string }) => id)
    expect(made.size).toBeGreaterThan(0)
    expect([...made].filter(each => !listed.includes(each))).toEqual([])
    expect(existsSync(`${executable}.upgrade`)).toBe(false)
    await endOther(server)
  })
})

describe('an upgrade of one server', () => {
  let server: Server
  beforeAll(async () => {
    server = await open()
  })
  afterAll(() => server.close())

  test('waits for no other one at work on the same executable, whatever it is for, regression', async () => {
    await using server = await open()
    const asked = Promise.withResolvers<void>()
    const rest = Promise.withResolvers<void>()
    const slow = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch() {
        asked.resolve()
        await rest.promise
        return new Response(Bun.file(next))
      },
    })
    const args = ['--sha256', nextSum, '--data-dir', at('without-server')]
    const first = command(['upgrade', slow.url.href, ...args], { command: [executable] })
    await asked.promise
    const second = await upgrade(server, next)
    expect([second.code, second.stderr]).toEqual([1, expect.stringContaining('another upgrade is at work')])
    rest.resolve()
    expect(await first).toMatchObject({ code: 0, stderr: '' })
    slow.stop(true)
    expect([await digestOf(executable), files()]).toEqual([nextSum, ['threadbox', 'threadbox.previous']])
  })

  test('does not bring back a server that is told to end meanwhile, regression', async () => {
    await using server = await open()
    const reply = await server.chat('/slow 60')
    const reading = reply.text().catch(() => '')
    process.kill(server.pid, 'SIGUSR2')
    await until(async () => (await server.ask('POST', '/v1/tokens', { agent: 'echo' })).status === 503)
    process.kill(server.pid, 'SIGTERM')
    expect(await server.ended()).toBe(0)
    await reading
  })

  test('is refused before anything is changed', async () => {
    const text = at('text')
    writeFileSync(text, 'no program')
    const foreign = at('foreign')
    const head = Buffer.from(await Bun.file(built).slice(0, 4096).arrayBuffer())
    head.writeUInt16LE(183, 18)
    writeFileSync(foreign, head)
    const far = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: ({ url }) =>
        new URL(url).pathname === '/out'
          ? Response.redirect('http://example.com/threadbox')
          : Response.redirect(`${url}x`),
    })
    const refusals: [string[], RegExp][] = [
      [[next, '--sha256', '0'.repeat(64)], /has the SHA-256 [0-9a-f]{64}, not 0{64}/],
      [[next, '--sha256', 'x'], /--sha256: must be 64 hexadecimal digits/],
      [[text], /text is no executable of Linux/],
      [[foreign], /foreign is not for x64/],
      [[at('none')], /no such file/],
      [['http://example.com/threadbox', '--sha256', nextSum], /must be https/],
      [['https://127.0.0.1:1/threadbox'], /--sha256: wanted with a URL/],
      [[`${far.url}out`, '--sha256', nextSum], /example.com\/threadbox: must be https/],
      [[`${far.url}loop`, '--sha256', nextSum], /more than 5 redirects/],
      [['--back'], /there is no \S+threadbox.previous/],
      [[], /wants a FILE, a URL or --back/],
    ]
    for (const [args, words] of refusals) {
      const { code, stderr } = await upgrade(server, ...args)
      expect(stderr).toMatch(words)
      expect([code > 0, files()]).toEqual([true, ['threadbox']])
    }
    far.stop(true)
    expect(await versionOf(server)).toBe(builtVersion)
  })

  test('that is killed leaves an executable that runs, and the next one, by a URL, mends it', async () => {
    const steps: (() => boolean)[] = [
      () => existsSync(`${executable}.next`),
      () => existsSync(`${executable}.upgrade`),
      () => statSync(executable).size === statSync(next).size,
    ]
    for (const isReached of steps) {
      const child = Bun.spawn([executable, 'upgrade', next, '--data-dir', server.dataDirectory], {
        stdio: ['ignore', 'ignore', 'ignore'],
      })
      while (child.exitCode === null && !isReached()) await Bun.sleep(1)
      child.kill('SIGKILL')
      await child.exited
      expect((await command(['version'], { command: [executable] })).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
      await until(async () => (await server.ask('GET', '/v1/me').catch(() => undefined))?.status === 200)
    }
    const near = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(Bun.file(next)) })
    const { code, stderr } = await upgrade(server, near.url.href, '--sha256', nextSum)
    near.stop(true)
    expect([code, stderr]).toEqual([0, ''])
    expect([await versionOf(server), await digestOf(`${executable}.previous`)]).toEqual([
      NEXT_VERSION,
      await digestOf(built),
    ])
    expect(files()).toEqual(['threadbox', 'threadbox.previous'])
  })
})

/** The stream from after an event on, as soon as a server gives it. */
async function resume(server: Server, path: string, lastEventId: string): Promise<Response> {
  for (;;) {
    const headers = { 'last-event-id': lastEventId }
    const answer = await server.request('GET', `/v1/chat/echo/${path}`, { headers }).catch(() => undefined)
    if (answer?.status === 200) return answer
    await answer?.body?.cancel()
    await Bun.sleep(20)
  }
}
