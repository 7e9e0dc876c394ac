import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf } from '../support/client.ts'
import { importDebian } from '../support/docker-images.ts'
import { useDockerd } from '../support/dockerd.ts'
import { findRunsc, gvisorRuntime } from '../support/gvisor.ts'
import { command, patiently, Server } from '../support/server.ts'

/** The least that a sandbox on gVisor has to do and to hold. The contract of backends and the probes run on it by scripts/proofs/gvisor.ts. */

patiently()

const runsc = await findRunsc()
// Before the engine goes.
afterAll(() => (runsc.isOld ? undefined : server.close()))
const dockerd = useDockerd({ settings: () => gvisorRuntime(runsc.path) })
const env = { DOCKER_HOST: dockerd.host }
const directory = mkdtempSync(join(tmpdir(), 'threadbox-gvisor-'))
afterAll(() => rmSync(directory, { recursive: true }))
const flags = [
  ...['--backends', 'nsjail,docker', '--docker-image', 'debian', '--docker-runtime', 'plain,runsc,runsc-apart'],
  ...['--agents', directory, '--spares', '0'],
]
const server = new Server({ flags, env })

beforeAll(async () => {
  await importDebian(dockerd.api)
  const sandbox = { runtime: 'runsc-apart', isolation: 'gvisor' }
  await Bun.write(
    join(directory, 'apart.json'),
    JSON.stringify({ slug: 'apart', name: 'Apart', engine: 'echo', sandbox }),
  )
  if (!runsc.isOld) await server.start()
}, 300_000)

const shared: { id?: string } = {}
const sandbox = async () => (shared.id ??= await server.sandbox({ isolation: 'gvisor' }))
const detail = async (id: string) => (await server.ask('GET', `/v1/sandboxes/${id}`)).body
const said = async (id: string, text: string) => {
  const { stdout, stderr } = await server.exec(id, text)
  return `${stdout}${stderr}`.trim()
}

const onCurrent = () => {
  test('it is made by its class, runs on a kernel of its own, and says what confines it', async () => {
    const id = await sandbox()
    const { isolation, provider } = await detail(id)
    expect([provider, isolation.kind]).toEqual(['docker', 'gvisor'])
    expect(isolation.details[0]).toContain("on gVisor's kernel (runsc)")
    expect(await said(id, 'cat /proc/version')).toContain('gvisor')
    expect((await (await server.chat('hello', { sandboxId: id })).text()).includes('hello')).toBe(true)
    const plain = await server.sandbox({ isolation: 'container' })
    expect((await detail(plain)).isolation.kind).toBe('container')
    expect(await said(plain, 'cat /proc/version')).not.toContain('gvisor')
    expect((await server.ask('DELETE', `/v1/sandboxes/${plain}`)).status).toBe(204)
  })

  test('a kill finds what has left its group, by a mark that nothing inside can change: regression', async () => {
    const id = await sandbox()
    const tried = `python3 -c "
import resource
for pid in (0, 1):
  for limit in (resource.RLIMIT_RSS, 10):
    for pair in ((5, 5), (-1, -1)):
      try: resource.prlimit(pid, limit, pair) if pid else resource.setrlimit(limit, pair); print('changed', pid, limit, pair) if pid == 0 else None
      except (OSError, ValueError): pass
print('tried')"`
    expect(await said(id, tried)).toBe('tried')
    const text = "(setsid sh -c 'sleep 47475 & sleep 47475' &) ; sleep 47475"
    const answer = await server.ask('POST', `/v1/sandboxes/${id}/exec`, { command: text, timeoutMs: 2000 })
    expect(codeOf(answer)).toContain('command_timeout')
    expect(await said(id, 'pgrep -cf "^sleep 47475"')).toBe('0')
  })

  test('what programs connect to comes to the server, which decides, and nothing else leads anywhere: regression', async () => {
    const id = await sandbox()
    const program = `python3 -c "
import errno, socket
for address in [('10.1.2.3', 443), ('169.254.169.254', 80)]:
  try:
    s = socket.create_connection(address, 20); print(s.recv(1))
  except OSError as error: print(errno.errorcode[error.errno])
for address in [('10.0.0.1', 99), ('8.8.8.8', 123)]:
  try:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20); s.connect(address); s.send(b'x'); print(s.recv(1))
  except OSError as error: print(errno.errorcode[error.errno])
try: socket.create_connection(('2606:4700::1111', 443), 20); print('reached')
except OSError as error: print('no IPv6')
try: socket.getaddrinfo('nowhere.invalid', 80)
except OSError as error: print(error.args[0] == socket.EAI_NONAME)
print(sorted(name for _, name in socket.if_nameindex()))"`
    expect((await said(id, program)).split('\n')).toEqual([
      ...['ECONNRESET', 'ECONNRESET', 'ECONNREFUSED', 'ECONNREFUSED', 'no IPv6', 'True', "['lo']"],
    ])
    const { body } = await server.ask('GET', `/v1/sandboxes/${id}/network/decisions`)
    expect(JSON.stringify(body)).toContain('"10.1.2.3')
    const network = (await detail(id)).isolation.details.find((line: string) => line.startsWith('network: '))
    expect(network).toBe('network: loopback; TCP to anywhere leads to the server, which decides, and so does its proxy')
  })

  test('root inside has no power over the network, whoever starts it, and none of the tables that redirect: regression', async () => {
    const id = await sandbox()
    const program = `python3 -c "
import errno, socket, struct
def tried(what):
  try: what(); print('done')
  except OSError as error: print(errno.errorcode[error.errno])
tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 255))
tried(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
def change(kind, body):
  s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
  s.send(struct.pack('IHHII', 16 + len(body), kind, 0x605, 1, 0) + body)
  code = struct.unpack('i', s.recv(4096)[16:20])[0]
  if code: raise OSError(-code, '')
tried(lambda: change(20, struct.pack('BBBBI', 2, 8, 0, 0, 1) + struct.pack('HH4s', 8, 2, bytes([9, 0, 0, 1]))))
print(int(next(line for line in open('/proc/self/status') if line.startswith('CapBnd')).split()[1], 16) & 0x3000)"`
    const expected = ['EPERM', 'EPERM', 'EPERM', '0']
    expect((await said(id, program)).split('\n')).toEqual(expected)
    const { body } = await server.ask('POST', `/v1/sandboxes/${id}/processes`, { command: `${program} >/tmp/said` })
    expect(body.pid).toBeNumber()
    expect(
      (await said(id, 'until [ "$(wc -l </tmp/said)" = 4 ]; do sleep 0.1; done; cat /tmp/said')).split('\n'),
    ).toEqual(expected)
  })

  test('without --net-raw programs have the proxy alone, which is said: regression', async () => {
    const id = await server.sandbox({ agent: 'apart' })
    const network = (await detail(id)).isolation.details.find((line: string) => line.startsWith('network: '))
    expect(network).toMatch(/^network: loopback, and the server's proxy; TCP leads nowhere else: .*--net-raw/)
    const program = `python3 -c "
import errno, socket, urllib.request, urllib.error
try: socket.create_connection(('10.1.2.3', 443), 20)
except OSError as error: print(errno.errorcode[error.errno])
try: print(urllib.request.urlopen('http://169.254.169.254/', timeout=20).status)
except urllib.error.HTTPError as error: print(error.code)"`
    expect((await said(id, program)).split('\n')).toEqual(['ENETUNREACH', '403'])
    expect((await server.ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
  })

  test('its files outlast a stop of the container and of the server, and a fork has them', async () => {
    const id = await sandbox()
    await said(id, 'echo kept >/home/user/file')
    await dockerd.api.ask('POST', `/containers/threadbox-${(await detail(id)).sandboxId}/stop?t=0`)
    await server.stop()
    await server.start()
    expect(await said(id, 'cat /home/user/file')).toBe('kept')
    const { forks } = (await server.ask('POST', `/v1/sandboxes/${id}/fork`, {})).body
    const fork = forks[0].sandbox.id
    expect((await detail(fork)).isolation.kind).toBe('gvisor')
    expect(await said(fork, 'cat /home/user/file /proc/version')).toMatch(/^kept\n.*gvisor/)
    for (const each of [id, fork]) expect((await server.ask('DELETE', `/v1/sandboxes/${each}`)).status).toBe(204)
    expect(await dockerd.api.containers()).toEqual([])
  })

  test('the selftest finds no way out of its network: regression', async () => {
    const { code, stdout } = await command(
      [
        ...['selftest', 'docker', '--area', 'egress', '--json', '--data-dir', join(directory, 'selftest')],
        ...['--docker-image', 'debian', '--docker-runtime', 'runsc'],
      ],
      { env },
    )
    const { backends } = JSON.parse(stdout)
    const results = backends.flatMap(({ runtime, probes }: any) => probes.map((each: any) => ({ runtime, ...each })))
    expect(backends.map(({ runtime }: any) => runtime)).toContain('runsc')
    expect(results.filter(({ outcome }: any) => !['held', 'excused'].includes(outcome))).toEqual([])
    expect(code).toBe(0)
  })
}

const onOld = () => {
  test('doctor says that a gVisor which cannot hold a sandbox is none', async () => {
    const { code, stdout } = await command(
      ['doctor', '--docker-image', 'debian', '--backend', 'docker', '--docker-runtime', 'runsc'],
      { env },
    )
    expect([code, stdout]).toEqual([1, expect.stringMatching(/^FAILED +containers: /m)])
  })
}

if (runsc.isOld) onOld()
else onCurrent()
