import { beforeAll, describe, expect, test } from 'bun:test'
import { HarnessCapabilityUnsupportedError, HarnessSandboxAuthenticationError } from '@ai-sdk/harness'
import { createThreadboxSandbox, ThreadboxError } from '../../packages/ai-sdk/src/index.ts'
import { useApp } from '../support/app.ts'
import { until } from '../support/until.ts'

const app = useApp()

const provider = (more: { agent?: string; setup?: string[]; ports?: number[]; apiKey?: string } = {}) =>
  createThreadboxSandbox({ baseUrl: app.url, apiKey: app.key, ...more })
type Session = Awaited<ReturnType<ReturnType<typeof provider>['createSession']>>

let session: Session
beforeAll(async () => {
  session = await provider({ ports: [4321, 4322] }).createSession({ sessionId: 'shared' })
})

const textOf = (stream: ReadableStream<Uint8Array>) => new Response(stream).text()
const statusOf = async (id: string) => (await app.ask('GET', `/v1/sandboxes/${id}`)).status

describe('sessions', () => {
  test('are found by another process, and wake what has stopped', async () => {
    const first = await provider().createSession({ sessionId: 'a/b c' })
    await first.writeTextFile({ path: 'kept', content: 'here' })
    const process = await first.spawn({ command: 'sleep 1000' })
    await expect(async () => await provider().createSession({ sessionId: 'a/b c' })).toThrow('has this name already')
    await first.stop()
    await first.stop()
    await process.wait().then(undefined, () => {})
    const again = await provider().resumeSession({ sessionId: 'a/b c' })
    expect(again.id).toBe(first.id)
    expect(await again.readTextFile({ path: 'kept' })).toBe('here')
    expect((await app.ask('GET', `/v1/sandboxes/${again.id}`)).body.isRunning).toBe(true)
    await again.destroy()
    await again.destroy()
    await expect(async () => await provider().resumeSession({ sessionId: 'a/b c' })).toThrow(ThreadboxError)
  })

  test('of an identity begin with what was prepared once, however many begin at once', async () => {
    let count = 0
    const onFirstCreate = async (prepared: object) => {
      count += 1
      expect(Object.keys(prepared)).not.toContain('stop')
      await (prepared as Session).run({ command: 'mkdir -p /tmp/recipe && date +%N > /tmp/recipe/made' })
    }
    const create = (identity: string) => provider().createSession({ identity, onFirstCreate })
    const sessions = await Promise.all([create('0123456789abcdef'), create('0123456789abcdef')])
    sessions.push(await create('0123456789abcdef'))
    const made = await Promise.all(sessions.map(each => each.readTextFile({ path: '/tmp/recipe/made' })))
    expect([count, new Set(made).size, made[0]?.length]).toEqual([1, 1, 10])
    const other = await create('fedcba9876543210')
    expect([count, await other.readTextFile({ path: '/tmp/recipe/made' })]).not.toEqual([2, made[0]])
    const left = (await app.ask('GET', '/v1/sandboxes')).body.sandboxes.map(({ name }: { name: string | null }) => name)
    expect(left.filter((name: string | null) => name?.includes('making'))).toEqual([])
  })

  test('whose preparation fails leave nothing, and the next one prepares again', async () => {
    const failing = { identity: '1111111111111111', onFirstCreate: () => Promise.reject(new Error('no registry')) }
    const before = (await app.ask('GET', '/v1/sandboxes')).body.sandboxes.length
    await expect(async () => await provider().createSession(failing)).toThrow('no registry')
    expect((await app.ask('GET', '/v1/sandboxes')).body.sandboxes.length).toBe(before)
    const next = await provider().createSession({ ...failing, onFirstCreate: async () => {} })
    expect(await statusOf(next.id)).toBe(200)
  })

  test('on a sandbox of the caller leave it as it is', async () => {
    const id = await app.sandbox()
    const wrapping = createThreadboxSandbox({ baseUrl: app.url, apiKey: app.key, sandbox: id })
    const onFirstCreate = () => Promise.reject(new Error('called'))
    const wrapped = await wrapping.createSession({ sessionId: 'x', identity: '2222222222222222', onFirstCreate })
    await wrapped.stop()
    await wrapped.destroy()
    expect([wrapped.id, (await wrapping.resumeSession({ sessionId: 'y' })).id, await statusOf(id)]).toEqual([
      id,
      id,
      200,
    ])
  })

  test('say that the key is wrong, that the signal was aborted, and nothing at construction', async () => {
    const wrong = provider({ apiKey: 'tbx_wrong' })
    await expect(async () => await wrong.createSession()).toThrow(HarnessSandboxAuthenticationError)
    await expect(async () => await wrong.resumeSession({ sessionId: 'x' })).toThrow(HarnessSandboxAuthenticationError)
    const aborted = { abortSignal: AbortSignal.abort(new Error('enough')) }
    await expect(async () => await provider().createSession(aborted)).toThrow('enough')
    await expect(async () => await provider({ agent: 'nobody' }).createSession()).toThrow(ThreadboxError)
  })
})

describe('commands', () => {
  test('give exit code and whole output, with variables and a directory', async () => {
    const command = 'pwd; echo "$WORD"; echo oops >&2; exit 7'
    expect(await session.run({ command, env: { WORD: '$(x) "y"' }, workingDirectory: '/tmp' })).toEqual({
      exitCode: 7,
      stdout: '/tmp\n$(x) "y"\n',
      stderr: 'oops\n',
    })
    const { stdout } = await session.run({ command: 'seq 600000; sleep 100 & mkdir -p sub' })
    expect([stdout.length, stdout.endsWith('\n600000\n')]).toEqual([4_088_895, true])
    expect((await session.run({ command: 'pwd', workingDirectory: 'sub' })).stdout).toBe('/home/user/sub\n')
  })

  test('that are spawned print as they run, end by kill, and keep bytes', async () => {
    const process = await session.spawn({
      command: 'printf "\\xff\\x00"; cat /dev/zero | head -c 3; echo e >&2; sleep 1000',
    })
    expect(process.pid).toBeGreaterThan(0)
    const reader = process.stdout.getReader()
    let bytes: number[] = []
    while (bytes.length < 5) bytes = bytes.concat(...((await reader.read()).value ?? []))
    expect(bytes).toEqual([255, 0, 0, 0, 0])
    await process.kill()
    await process.kill()
    expect(await process.wait()).toEqual({ exitCode: 137 })
    expect((await reader.read()).done).toBe(true)
    expect(await textOf(process.stderr)).toBe('e\n')
    await process.kill()
  })

  test('that are aborted are killed, and reject with the reason', async () => {
    const controller = new AbortController()
    const marker = `aborted-${crypto.randomUUID()}`
    const process = await session.spawn({ command: `exec -a ${marker} sleep 1000`, abortSignal: controller.signal })
    const run = session.run({ command: `exec -a ${marker} sleep 1000`, abortSignal: controller.signal })
    const count = async () => (await session.run({ command: `pgrep -cf '^${marker}'` })).stdout.trim()
    await until(async () => (await count()) === '2')
    const reason = new Error('changed my mind')
    controller.abort(reason)
    await expect(async () => await process.wait()).toThrow(reason)
    await expect(async () => await run).toThrow(reason)
    await until(async () => (await count()) === '0')
    expect((await process.stdout.getReader().read()).done).toBe(true)
  })
})

describe('files', () => {
  test('are read and written as text, bytes and streams, with parents, by relative paths too', async () => {
    await session.writeTextFile({ path: 'deep/er/text.txt', content: 'one\ntwo\nthree\n' })
    expect(await session.readTextFile({ path: '/home/user/deep/er/text.txt', startLine: 2, endLine: 99 })).toBe(
      'two\nthree\n',
    )
    const bytes = crypto.getRandomValues(new Uint8Array(60_000))
    await session.writeBinaryFile({ path: '/tmp/bytes', content: bytes })
    expect(await session.readBinaryFile({ path: '/tmp/bytes' })).toEqual(bytes)
    const stream = await session.readFile({ path: '/tmp/bytes' })
    await session.writeFile({ path: '/tmp/copy', content: stream! })
    expect(await session.readBinaryFile({ path: '/tmp/copy' })).toEqual(bytes)
    for (const encoding of ['utf-8', 'utf16le', 'latin1']) {
      await session.writeTextFile({
        path: 'encoded',
        content: encoding === 'latin1' ? 'ü' : '\ufeffü',
        encoding,
      })
      expect(await session.readTextFile({ path: 'encoded', encoding })).toBe(encoding === 'latin1' ? 'ü' : '\ufeffü')
    }
    await expect(async () => await session.writeTextFile({ path: 'x', content: 'ü', encoding: 'ascii' })).toThrow(
      RangeError,
    )
  })

  test('that are not there are null; a directory is an error', async () => {
    expect(await session.readFile({ path: 'none' })).toBeNull()
    expect(await session.readBinaryFile({ path: '/none/x' })).toBeNull()
    expect(await session.readTextFile({ path: 'none' })).toBeNull()
    await expect(async () => await session.readTextFile({ path: '/tmp' })).toThrow(ThreadboxError)
  })
})

describe('ports', () => {
  test('have URLs without headers, through which WebSockets and queries pass untouched', async () => {
    const code = `Bun.serve({ port: 4321, fetch: (request, server) => server.upgrade(request, { data: request.url }) ? undefined : new Response(new URL(request.url).search),
      websocket: { message(socket, text) { socket.send(socket.data + ' ' + text) } } })`
    await session.writeTextFile({ path: '/tmp/server.ts', content: code })
    const server = await session.spawn({ command: 'BUN_BE_BUN=1 exec /dev/.threadbox/threadbox run /tmp/server.ts' })
    await session.run({ command: 'until curl -s localhost:4321; do sleep 0.05; done' })
    const query = '?agent_bridge_token=a%2Fb%20c&x'
    const url = await session.getPortUrl({ port: 4321 })
    expect(await (await fetch(url + query)).text()).toBe(query)
    const address = (await session.getPortEndpoint({ port: 4321, protocol: 'ws' })).url
    expect(address).toStartWith(app.url.replace('http', 'ws'))
    for (const word of ['first', 'again']) {
      const socket = new WebSocket(address + query)
      const answer = new Promise<string>((resolve, reject) => {
        socket.onmessage = ({ data }) => resolve(data)
        socket.onerror = () => reject(new Error('no connection'))
        socket.onopen = () => socket.send(word)
      })
      expect(await answer).toBe(`http://localhost:4321/${query} ${word}`)
      socket.close()
    }
    await server.kill()
  })

  test('are those of the settings, or those that were set, and no others', async () => {
    expect(session.ports).toEqual([4321, 4322])
    expect((await provider().createSession()).ports).toEqual([4000])
    await expect(async () => await session.getPortUrl({ port: 5000 })).toThrow(HarnessCapabilityUnsupportedError)
    const other = await provider({ ports: [1] }).resumeSession({ sessionId: 'shared' })
    await other.setPorts?.([5000])
    expect([other.ports, await other.getPortUrl({ port: 5000 })]).toEqual([
      [5000],
      expect.stringContaining('/ports/5000/'),
    ])
    await expect(async () => await other.getPortUrl({ port: 1 })).toThrow(HarnessCapabilityUnsupportedError)
  })
})

test('the network policy changes what a running sandbox may reach', async () => {
  const network = async () => {
    const { allowOut, denyOut } = (await app.ask('GET', `/v1/sandboxes/${session.id}`)).body.network
    return [allowOut, denyOut]
  }
  const fetched = async () =>
    (await session.run({ command: 'curl -s -o /dev/null -w "%{http_connect}" https://10.1.2.3' })).stdout
  await session.setNetworkPolicy?.({ mode: 'deny-all' })
  expect([await network(), await fetched()]).toEqual([[[], []], '403'])
  await session.setNetworkPolicy?.({ mode: 'custom', allowedHosts: ['*.example.com'], deniedCIDRs: ['192.0.2.0/24'] })
  expect(await network()).toEqual([['*.example.com'], ['192.0.2.0/24']])
  await session.setNetworkPolicy?.({ mode: 'custom', allowedCIDRs: ['192.0.2.0/24'] })
  expect(await network()).toEqual([['192.0.2.0/24'], []])
  await session.setNetworkPolicy?.({ mode: 'allow-all' })
  expect(await network()).toEqual([null, []])
})

test('a restricted session has files and commands, and nothing more', () => {
  const members = [
    'readFile',
    'readBinaryFile',
    'readTextFile',
    'writeFile',
    'writeBinaryFile',
    'writeTextFile',
    'run',
    'spawn',
  ]
  const restricted = session.restricted()
  expect(Object.keys(restricted).sort()).toEqual(['description', ...members].sort())
  expect(restricted.description).toContain('/home/user')
  expect(session.description).toContain('4321, 4322')
})
