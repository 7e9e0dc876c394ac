import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createNsjailBackend } from 'nsjail-wrapper'
import { getEnvironmentPaths } from '../../plugins/nsjail/host/layout.ts'
import { connectInside, openNetwork } from '../../plugins/nsjail/host/network-namespace.ts'
import { openNetworkOf } from '../../plugins/nsjail/jail/jail-network.ts'
import type { Descriptor } from '../../src/descriptor.ts'
import { runCommand } from '../../src/environment/run-command.ts'
import { exhaustDescriptors } from '../support/descriptor-limit.ts'

setDefaultTimeout(60_000)

const root = join(import.meta.dir, '../..')
const scratch = mkdtempSync(join(tmpdir(), 'threadbox-proxy-'))
const former = join(scratch, 'former')
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

/** A guest that knows nothing of a server that listens, as those of earlier versions. */
beforeAll(async () => {
  const serve = `${root}/src/guest/inside/serve.ts`
  writeFileSync(
    `${former}.ts`,
    `import { serveGuest } from '${serve}'\ndelete process.env.THREADBOX_SERVER_LISTENS\nserveGuest(3)\n`,
  )
  const flags = ['--compile', '--no-compile-autoload-bunfig', '--no-compile-autoload-dotenv']
  const build = Bun.spawn([process.execPath, 'build', ...flags, `${former}.ts`, '--outfile', former], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  expect(await build.exited).toBe(0)
})

test.each([
  ['this one', join(root, 'dist/threadbox'), process.getuid?.() === 0],
  ['an earlier one, which listens itself', former, false],
])('what programs say reaches the proxy from a guest of a version like %s', async (_, executable, isDirect) => {
  let direct: boolean | undefined
  const backend = createNsjailBackend({
    dataDirectory: mkdtempSync(join(scratch, 'data-')),
    executable,
    nsjailPath: join(root, '.cache/nsjail/bin/nsjail'),
    serveProxy(_id, socket) {
      direct = socket instanceof Socket
      socket.pipe(socket)
    },
    log: line => console.error(line),
  })
  const limits = { memoryMb: 1024, processes: 200, cpus: 2, diskMb: 512 }
  const environment = await backend.create({ id: `env_${Bun.randomUUIDv7()}`, limits })
  try {
    const command = 'exec 3<>/dev/tcp/127.0.0.1/3128; echo hello >&3; read -r line <&3; echo "$line"'
    expect((await runCommand(environment, { command })).stdout).toBe('hello\n')
    expect(direct).toBe(isDirect)
  } finally {
    await environment.destroy()
    await backend.close()
  }
})

test('a connection to a port inside is made without the guest, and is cut with the sandbox', async () => {
  const backend = createNsjailBackend({
    dataDirectory: mkdtempSync(join(scratch, 'data-')),
    executable: join(root, 'dist/threadbox'),
    nsjailPath: join(root, '.cache/nsjail/bin/nsjail'),
    log: line => console.error(line),
  })
  const limits = { memoryMb: 1024, processes: 200, cpus: 2, diskMb: 512 }
  const environment = await backend.create({ id: `env_${Bun.randomUUIDv7()}`, limits })
  try {
    const serve = [
      'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1], flush=True)',
      'c, _ = s.accept(); c.sendall(c.recv(100)); c.recv(1)',
    ].join('\n')
    const server = await environment.spawn({ command: ['python3', '-c', serve] })
    const { value } = await server.stdout.getReader().read()
    const stream = await environment.connect(Number(Buffer.from(value ?? []).toString()))
    expect(stream instanceof Socket).toBe(process.getuid?.() === 0)
    const said = new Promise(resolve => stream.once('data', resolve))
    stream.write('hello')
    expect(String(await said)).toBe('hello')
    const closed = new Promise(resolve => stream.once('close', resolve))
    server.exited.catch(() => {})
    await environment.destroy()
    await closed
  } finally {
    await environment.destroy()
    await backend.close()
  }
})

test('the network of a process is refused when it is the server’s own', () => {
  expect(() => openNetwork(process.pid)).toThrow('no network of its own')
})

test.skipIf(process.getuid?.() !== 0)(
  'a burst of connections at a time without free descriptors leaves the proxy reachable: regression',
  async () => {
    const burst = 64
    const isTried = Promise.withResolvers<void>()
    let taken = 0
    const connections: (Descriptor | undefined)[] = []
    const dataDirectory = mkdtempSync(join(scratch, 'data-'))
    const backend = createNsjailBackend({
      dataDirectory,
      executable: join(root, 'dist/threadbox'),
      nsjailPath: join(root, '.cache/nsjail/bin/nsjail'),
      serveProxy(_id, socket) {
        if (++taken > burst) return void socket.pipe(socket)
        if (taken < burst) return
        const restore = exhaustDescriptors()
        // After the pause of the listener, which began in this turn.
        setTimeout(() => {
          restore()
          isTried.resolve()
        }, 50)
      },
      log: line => console.error(line),
    })
    const limits = { memoryMb: 1024, processes: 200, cpus: 2, diskMb: 512 }
    const environment = await backend.create({ id: `env_${Bun.randomUUIDv7()}`, limits })
    let network: Descriptor | undefined
    try {
      const { pid } = getEnvironmentPaths(dataDirectory, environment.id)
      network = openNetworkOf(Number.parseInt(readFileSync(pid, 'utf8'), 10))
      for (let left = burst; left > 0; left--) connections.push(connectInside(network, '127.0.0.1', 3128))
      await isTried.promise
      const command = 'exec 3<>/dev/tcp/127.0.0.1/3128; echo hello >&3; read -t 20 -r line <&3; echo "$line"'
      expect((await runCommand(environment, { command })).stdout).toBe('hello\n')
    } finally {
      for (const each of connections) each?.close()
      network?.close()
      await environment.destroy()
      await backend.close()
    }
  },
)
