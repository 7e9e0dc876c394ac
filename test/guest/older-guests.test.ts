import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createNsjailBackend } from 'nsjail-wrapper'
import { runCommand } from '../../src/environment/run-command.ts'
import type { Environment } from '../../src/plugin-api/index.ts'
import { processesNamed } from '../support/leftovers.ts'
import { patiently, temporaryDirectory } from '../support/server.ts'
import { until } from '../support/until.ts'

patiently()

const root = join(import.meta.dir, '../..')
const fixtures = join(root, 'test/fixtures/guests')
const text = async (body: ReadableStream<Uint8Array>) => await new Response(body).text()

/** A script with the Bun of this build around it: it runs as a guest does. */
async function executableOf(script: string, outfile: string): Promise<string> {
  const bun = Bun.spawn([join(root, '.cache/bin/bun'), 'build', '--compile', script, `--outfile=${outfile}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [said, code] = await Promise.all([bun.stderr.text(), bun.exited])
  if (code !== 0) throw new Error(said)
  return outfile
}

describe.each(readdirSync(fixtures))('a guest of the wire version %s, which runs since before an upgrade', version => {
  const directory = temporaryDirectory()
  const said: string[] = []
  const open = (executable: string) =>
    createNsjailBackend({
      dataDirectory: join(directory, 'data'),
      executable,
      nsjailPath: join(root, '.cache/nsjail/bin/nsjail'),
      serveProxy: (id, socket) => void socket.on('data', bytes => socket.write(`${id} ${bytes}`)),
      serveDirect: (_id, socket, { address, port }) => void socket.end(`to ${address} ${port}`),
      log: line => void said.push(line),
    })
  let backend: Awaited<ReturnType<typeof open>>
  let environment: Environment
  let server: number
  const shell = (command: string) => runCommand(environment, { command })

  beforeAll(async () => {
    const older = await open(await executableOf(join(fixtures, version, 'guest.js'), join(directory, 'older')))
    const made = await older.create({ id: `env_older${version}`, limits: {} })
    await made.files.write('/home/user/kept', Buffer.from('kept'))
    await runCommand(made, { command: 'sleep 7311 >/dev/null 2>&1 &' })
    const started = await made.processes?.start({
      command: 'while read -r line; do echo "got $line"; done',
      stdin: 'pipe',
      name: 'reader',
    })
    server = started?.pid ?? 0
    await older.close()
    backend = await open(join(root, 'dist/threadbox'))
    const found = await backend.open(made.id)
    if (!found) throw new Error('the environment is lost')
    environment = found
  })
  afterAll(async () => {
    await environment.destroy()
    await backend.close()
    rmSync(directory, { recursive: true })
  })

  test('is reached, with all that runs in it', async () => {
    expect((await shell('cat kept; echo out; echo error >&2; exit 3')).exitCode).toBe(3)
    expect((await shell('cat kept')).stdout).toBe('kept')
    expect(processesNamed('7311').length).toBe(1)
    expect(said).toEqual([])
  })

  test('takes input and a kill of a command, and gives large output', async () => {
    const child = await environment.spawn({ command: ['cat'], stdin: 'pipe' })
    const writer = child.stdin!.getWriter()
    await writer.write(Buffer.from('typed'))
    await writer.close()
    expect([await text(child.stdout), await child.exited]).toEqual(['typed', { exitCode: 0 }])
    const large = await environment.spawn({ command: 'head -c 3000000 /dev/zero' })
    expect((await new Response(large.stdout).bytes()).byteLength).toBe(3_000_000)
    const long = await environment.spawn({ command: 'sleep 7312' })
    long.kill()
    expect((await long.exited).signal).toBe('SIGKILL')
  })

  test('gives a terminal', async () => {
    const child = await environment.spawn({ command: 'read x; tput cols; tty', pty: { columns: 91, rows: 20 } })
    child.resize!({ columns: 92, rows: 20 })
    const writer = child.stdin!.getWriter()
    await writer.write(Buffer.from('\n'))
    expect(await text(child.stdout)).toMatch(/92\r\n\/dev\/pts\/\d+/)
  })

  test('keeps its processes: their output, input, signals and end', async () => {
    const processes = environment.processes!
    expect((await processes.list()).map(({ pid, name }) => [pid, name])).toEqual([[server, 'reader']])
    await processes.write(server, Buffer.from('news\n'))
    const { pieces } = await processes.read(server, 0, { wait: true })
    expect(pieces.map(({ bytes }) => bytes.toString()).join('')).toBe('got news\n')
    await processes.signal(server, 'SIGTERM')
    await until(async () => (await processes.get(server)).exit !== undefined)
    await processes.remove(server)
    const another = await processes.start({ command: 'true', pty: { columns: 80, rows: 24 } })
    await processes.resize(another.pid, { columns: 81, rows: 24 }).catch(() => {})
    await until(async () => (await processes.get(another.pid)).exit !== undefined)
  })

  test('reads, writes, lists, moves and removes files', async () => {
    const { files } = environment
    const bytes = new Uint8Array(2_000_000).fill(7)
    await files.makeDirectory('/home/user/d')
    expect(await files.write('/home/user/d/large', new Blob([bytes]).stream())).toBe(bytes.byteLength)
    const { size, body } = await files.read('/home/user/d/large')
    expect([size, Buffer.from(await new Response(body).bytes()).equals(bytes)]).toEqual([bytes.byteLength, true])
    await files.rename('/home/user/d/large', '/home/user/d/moved')
    expect((await files.list('/home/user/d')).map(({ name }) => name)).toEqual(['moved'])
    expect((await files.info('/home/user/d/moved'))?.size).toBe(bytes.byteLength)
    await files.remove('/home/user/d')
    expect(await files.info('/home/user/d')).toBeUndefined()
    await expect(files.read('/home/user/none')).rejects.toMatchObject({ code: 'file_not_found' })
  })

  test('reaches the proxy, and its ports are reached', async () => {
    const asked = await shell('exec 3<>/dev/tcp/127.0.0.1/3128; echo hello >&3; read -r line <&3; echo "$line"')
    expect(asked.stdout).toBe(`${environment.id} hello\n`)
    await shell(
      'mkdir -p /tmp/www && cd /tmp/www && echo served >index.html && { python3 -m http.server 8123 >/dev/null 2>&1 & }',
    )
    await shell(
      'for i in $(seq 500); do (exec 3<>/dev/tcp/127.0.0.1/8123) 2>/dev/null && exit; sleep 0.02; done; exit 1',
    )
    const socket = await environment.connect(8123)
    socket.end('GET /index.html HTTP/1.0\r\n\r\n')
    let answer = ''
    for await (const chunk of socket) answer += chunk
    expect(answer).toEndWith('served\n')
    await expect(environment.connect(8124)).rejects.toMatchObject({ code: 'port_unreachable' })
  })

  const connect = async () => (await shell('exec 3<>/dev/tcp/203.0.113.5/443 && cat <&3')).stdout
  // An ordinary user's server asks the guest for it, and these guests know nothing of it.
  const isLed = Number(version) >= 2 || process.getuid?.() === 0

  test('has its connections to any address led to the server, or is said to have the proxy alone', async () => {
    expect(await connect()).toBe(isLed ? 'to 203.0.113.5 443' : '')
    const [network] = environment.confinement.filter(line => line.startsWith('network: '))
    expect(network?.includes("and the server's proxy; TCP leads nowhere else")).toBe(!isLed)
  })

  test('is stopped, and runs with the guest of today from then on', async () => {
    await environment.pause!()
    expect(processesNamed('7311')).toEqual([])
    expect((await shell('cat kept')).stdout).toBe('kept')
    expect(await connect()).toBe('to 203.0.113.5 443')
  })
})
