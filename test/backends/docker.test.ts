import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDockerBackend, type DockerOptions } from '../../plugins/docker/index.ts'
import { newId } from '../../src/db/id.ts'
import { type CommandOptions, runCommand } from '../../src/environment/run-command.ts'
import type { Backend, Environment, EnvironmentSpec } from '../../src/plugin-api/index.ts'
import { importBusybox, importDebian, importMusl } from '../support/docker-images.ts'
import { useDockerd } from '../support/dockerd.ts'
import { readText } from '../support/leftovers.ts'
import { until } from '../support/until.ts'

// Containers start in a fraction of a second; a busy machine may take a hundred times that.
setDefaultTimeout(60_000)

const dockerd = useDockerd()
const { api } = dockerd
const scratch = mkdtempSync(join(tmpdir(), 'threadbox-docker-'))
const newDirectory = () => mkdtempSync(join(scratch, 'data-'))
const limits = { memoryMb: 256, processes: 100, cpus: 2, diskMb: 256 }
const log: string[] = []
let backend: Backend

const backendIn = (dataDirectory: string, options: Partial<DockerOptions> = {}) =>
  createDockerBackend({
    dataDirectory,
    image: 'debian',
    variables: { DOCKER_HOST: dockerd.host },
    executable: join(import.meta.dir, '../../dist/threadbox'),
    log: line => log.push(line),
    ...options,
  })

const created = (spec: Partial<EnvironmentSpec> = {}, by = backend) => by.create({ id: newId('env'), limits, ...spec })
const run = (environment: Environment, command: CommandOptions['command'], options: Partial<CommandOptions> = {}) =>
  runCommand(environment, { command, timeoutMs: 30_000, ...options })
const output = async (environment: Environment, command: CommandOptions['command']) =>
  (await run(environment, command)).stdout.trim()
const inspect = (environment: { id: string }) => api.ask('GET', `/containers/threadbox-${environment.id}/json`)

beforeAll(async () => {
  await importDebian(api)
  await Promise.all([importBusybox(api), importMusl(api)])
  backend = backendIn(newDirectory())
}, 300_000)

afterAll(async () => {
  await backend.close()
  rmSync(scratch, { recursive: true })
}, 60_000)

/** Of tests that share one. */
const shared: { environment?: Environment } = {}
const environmentOf = async () => (shared.environment ??= await created())

describe('images', () => {
  test('with one static program and no library: its own variables are for commands, not for the guest', async () => {
    const environment = await created({ image: 'busybox' })
    expect(await output(environment, 'echo "$PATH $GREETING $LD_PRELOAD $HOME"; pwd; busybox uname')).toBe(
      '/tools hello you /nowhere.so /home/user\n/home/user\nLinux',
    )
    await environment.files.write('/data/x', Buffer.from('x'))
    expect(await output(environment, ['/tools/cat', '/data/x'])).toBe('x')
    expect(
      await output(environment, 'for d in /tmp /var/tmp /dev/shm; do echo y >$d/y; done; ls -d /tmp/y /var/tmp/y'),
    ).toBe('/tmp/y\n/var/tmp/y')
    await environment.destroy()
  })

  test('of musl', async () => {
    const environment = await created({ image: 'musl:latest' })
    expect(await output(environment, 'hello; cat /proc/1/comm')).toBe('from musl\nld-linux-x86-64')
    await environment.destroy()
  })

  test('whose name has passed to another image since a spare was made: it is claimed by nobody', async () => {
    await api.ask('POST', '/images/busybox/tag?repo=moving', '{}')
    const spec = { limits, image: 'moving' }
    const [taken, left] = [await created({ ...spec, isSpare: true }), await created({ ...spec, isSpare: true })]
    expect(await backend.claimSpare?.({ ...spec, id: taken.id })).toBe(true)
    expect(await output(taken, 'echo $GREETING')).toBe('hello you')
    await api.ask('POST', '/images/debian/tag?repo=moving', '{}')
    expect(await backend.claimSpare?.({ ...spec, id: left.id })).toBe(false)
    await Promise.all([taken.destroy(), left.destroy()])
  })

  test('that an agent names must be names of images', async () => {
    for (const image of ['../../containers/json?', 'a b', '-x', '']) {
      await expect(created({ image })).rejects.toMatchObject({ code: 'invalid_request' })
    }
  })

  test('with volumes of their own: they are told of, and go with the sandbox', async () => {
    const source = await created({ image: 'busybox' })
    await api.ask('POST', `/commit?container=threadbox-${source.id}&repo=volumes&changes=VOLUME%20/state`, '{}')
    await source.destroy()
    const before = (await api.ask('GET', '/volumes')).Volumes.length
    const environment = await created({ image: 'volumes' })
    expect((await api.ask('GET', '/volumes')).Volumes.length).toBe(before + 1)
    expect(environment.confinement.join('\n')).toContain("the image's own volumes are not held by the disk limit")
    await environment.destroy()
    expect((await api.ask('GET', '/volumes')).Volumes.length).toBe(before)
  })
})

describe('a container', () => {
  test('has no path of the host, no network, few capabilities and the limits that were asked for', async () => {
    const environment = await environmentOf()
    const { Mounts, HostConfig, NetworkSettings, Config } = await inspect(environment)
    expect(Mounts).toMatchObject([
      { Type: 'volume', Name: 'threadbox-guest', Destination: '/dev/.threadbox', RW: false },
    ])
    expect(HostConfig).toMatchObject({
      Binds: null,
      Privileged: false,
      NetworkMode: 'none',
      CapDrop: ['ALL'],
      Memory: 256 << 20,
      MemorySwap: 256 << 20,
      NanoCpus: 2e9,
      Ulimits: [{ Name: 'fsize', Soft: 256 << 20, Hard: 256 << 20 }],
    })
    expect(Object.keys(NetworkSettings.Networks)).toEqual(['none'])
    expect(Config.User).toBe('0:0')
    expect(environment.confinement).toEqual([
      'isolation: container of debian, seccomp, few capabilities, no new privileges',
      "network: loopback, and the server's proxy; TCP leads nowhere else: nobody takes it",
      'memory: 256 MB',
      'processes: 100',
      'cpu: 2 cores',
      expect.stringMatching(/^disk: 256 MB by watching/),
    ])
    expect(await output(environment, 'grep -E "^(CapEff|NoNewPrivs|Seccomp):" /proc/self/status | cut -f2')).toBe(
      '00000000a00405fb\n1\n2',
    )
  })

  test('lets root inside work as package managers do', async () => {
    const environment = await environmentOf()
    const line = `mkdir -p /p/DEBIAN /p/opt && echo x >/p/opt/x && chown 33:33 /p/opt/x && chmod 4755 /p/opt/x
      printf 'Package: p\\nVersion: 1\\nArchitecture: all\\nMaintainer: m\\nDescription: d\\n' >/p/DEBIAN/control
      dpkg-deb --build /p /tmp/p.deb >/dev/null && apt-get install -qq -y /tmp/p.deb >/tmp/log 2>&1 || tail /tmp/log
      stat -c '%u %a' /opt/x; su nobody -s /bin/sh -c 'id -u'`
    expect(await output(environment, line)).toBe('33 4755\n65534')
  })

  test('a memory limit kills the hungry process alone', async () => {
    const environment = await environmentOf()
    const hungry = await run(environment, ['python3', '-c', 'b = [bytearray(1 << 20) for i in range(1024)]'])
    expect(hungry.exitCode).toBe(137)
    expect(await output(environment, 'echo alive')).toBe('alive')
  })

  test('that grows past its disk limit is stopped, and keeps what it has', async () => {
    const own = backendIn(newDirectory(), { idleMs: 4000 })
    const environment = await created({ limits: { ...limits, diskMb: 64 } }, own)
    const grow = 'for i in 1 2 3; do head -c 40000000 /dev/zero >/home/user/$i; done; sleep 1000'
    await expect(run(environment, grow)).rejects.toMatchObject({ code: 'sandbox_unavailable' })
    expect(environment.confinement.at(-1)).toMatch(/^stopped at .*: its files took \d+ MB, its limit is 64 MB$/)
    // It may be stopped again until there is room.
    const once = (command: string) => output(environment, command).catch(() => undefined)
    // The limit lies within the second of them.
    await until(async () => (await once('ls'))?.startsWith('1\n2') === true)
    await until(async () => (await once('rm -f *; ls')) === '')
    await environment.destroy()
    await own.close()
  })

  test('whose guest is killed, as when memory runs out, starts again with its next use', async () => {
    const environment = await created()
    await run(environment, 'echo kept >/home/user/f')
    const running = run(environment, 'sleep 1000')
    running.catch(() => {})
    await until(async () => (await output(environment, 'pgrep -c sleep')) === '1')
    process.kill((await inspect(environment)).State.Pid, 'SIGKILL')
    await expect(running).rejects.toMatchObject({ code: 'sandbox_unavailable' })
    expect(await output(environment, 'cat f; pgrep -c sleep')).toBe('kept\n0')
    await environment.destroy()
  })

  test('that somebody has stopped, paused or restarted is used again', async () => {
    const environment = await created()
    for (const action of ['stop?t=0', 'pause', 'restart?t=0']) {
      await api.ask('POST', `/containers/threadbox-${environment.id}/${action}`)
      // Processes of a paused one do not hear that their connection ends.
      if (action === 'pause') await environment.pause?.()
      await until(() =>
        output(environment, 'echo used').then(
          said => said === 'used',
          () => false,
        ),
      )
    }
    await environment.destroy()
  })

  test('that somebody has removed says so, and can be deleted', async () => {
    const environment = await created()
    await api.ask('DELETE', `/containers/threadbox-${environment.id}?force=1`)
    await until(() =>
      run(environment, 'true').then(
        () => false,
        error => /is gone/.test(error.message),
      ),
    )
    await environment.destroy()
    expect(await backend.open(environment.id)).toBeUndefined()
  })

  test('is paused when it is idle, and not while it is used', async () => {
    const own = backendIn(newDirectory(), { idleMs: 400 })
    const [idle, busy] = await Promise.all([created({}, own), created({}, own)])
    const child = await busy.spawn({ command: 'sleep 2; echo done' })
    await until(async () => !(await inspect(idle)).State.Running)
    expect(await new Response(child.stdout).text()).toBe('done\n')
    expect(await output(idle, 'echo again')).toBe('again')
    await Promise.all([idle.destroy(), busy.destroy()])
    await own.close()
  })

  test('that exists already is not made again, nor removed', async () => {
    const environment = await environmentOf()
    await expect(created({ id: environment.id })).rejects.toMatchObject({ code: 'conflict' })
    expect(await output(environment, 'echo here')).toBe('here')
  })
})

describe('escapes are refused', () => {
  test('links, renames, FIFOs and devices lead nowhere: regression', async () => {
    const environment = await environmentOf()
    const line = `cd /home/user; ln -s /var/run/docker.sock sock; ln -s ${scratch} host; ln -s /proc/1/root root
      ls -A /var/run/docker.sock /run/docker.sock ${dockerd.socket} 2>&1 | grep -v 'No such'
      ls host/ root/ 2>/dev/null
      ln /dev/.threadbox/*/threadbox x 2>/dev/null && echo linked; mv /dev/.threadbox/* . 2>/dev/null && echo moved
      touch /dev/.threadbox/x 2>/dev/null && echo wrote
      mknod disk b 254 0 2>/dev/null && echo made; mknod mem c 1 1 2>/dev/null && echo made
      for d in /dev/mem /dev/kmsg /dev/vda /dev/loop0 /dev/kvm /dev/fuse; do head -c 1 $d 2>/dev/null && echo read $d; done; echo end`
    expect(await output(environment, line)).toBe('end')
    for (const path of ['/home/user/host/x', '/home/user/root/x', '/home/user/sock']) {
      await expect(environment.files.read(path)).rejects.toMatchObject({
        code: expect.stringMatching(/file_not_found|invalid/),
      })
    }
    const secret = join(scratch, 'written')
    await environment.files.write(secret, Buffer.from('inside'))
    expect(await Bun.file(secret).exists()).toBe(false)
  })

  test('terminals and limits work in all else', async () => {
    const program = `
import pty, os, resource, termios, fcntl, struct, socket
a, b = pty.openpty()
fcntl.ioctl(a, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
print(struct.unpack('HHHH', fcntl.ioctl(b, termios.TIOCGWINSZ, b'0' * 8))[:2])
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200)); print(resource.getrlimit(resource.RLIMIT_NOFILE))
print(resource.prlimit(0, 10)[0] > 0)
socket.socketpair(); socket.socket(socket.AF_INET6); socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); print('sockets')
`
    expect(await output(await environmentOf(), ['python3', '-c', program])).toBe('(24, 80)\n(100, 200)\nTrue\nsockets')
  })

  test("nobody inside speaks with the guest, or as the bridge's user with anything: regression", async () => {
    const program = `
import socket
def ask(said):
    s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect('\\0threadbox'); s.sendall(said)
    try: return s.recv(1)
    except OSError as error: return type(error).__name__
print(ask(b'x' * 64), ask(b'\\0' * 13), ask(b'x'))
idle = [socket.socket(socket.AF_UNIX) for _ in range(40)]
for s in idle: s.connect('\\0threadbox')
`
    const environment = await environmentOf()
    expect(await output(environment, ['python3', '-c', program])).toMatch(
      /^(b''|ConnectionResetError)( (b''|ConnectionResetError)){2}$/,
    )
    expect(await output(environment, 'echo alive')).toBe('alive')
  })

  test("the guest's token is in no process's variables: regression", async () => {
    const environment = await environmentOf()
    const { State, Config } = await inspect(environment)
    const token = Config.Env.find((variable: string) => variable.startsWith('THREADBOX_TOKEN=')).split('=')[1]
    expect(token).toMatch(/^[0-9a-f]{64}$/)
    // As the machine's root sees it, whom nothing is kept from.
    const environ = await Bun.file(`/proc/${State.Pid}/environ`).text()
    expect(environ).toContain('THREADBOX_TOKEN=xxx')
    expect(environ).not.toContain(token)
    const members = (await Bun.file(`/proc/${State.Pid}/cgroup`).text()).split('\n')
    const inside = readdirSync('/proc').filter(
      pid =>
        /^\d+$/.test(pid) &&
        readText(`/proc/${pid}/cgroup`)
          .split('\n')
          .some(line => line && members.includes(line)),
    )
    for (const pid of inside) expect(readText(`/proc/${pid}/environ`)).not.toContain(token)
  })

  test('who ends the bridge ends a connection and no more', async () => {
    const environment = await environmentOf()
    await run(environment, 'sleep 4242 >/dev/null 2>&1 &')
    await expect(run(environment, 'pkill -9 -u 65533; sleep 60')).rejects.toMatchObject({ code: 'sandbox_unavailable' })
    expect(await output(environment, 'pgrep -c sleep')).toBe('1')
  })

  test('who stops the bridge makes nobody wait for ever: regression', async () => {
    const own = backendIn(newDirectory(), { silentMs: 1000 })
    const environment = await created({}, own)
    expect(await output(environment, 'kill -STOP 1; kill -9 1; echo on')).toBe('on')
    await expect(run(environment, 'pkill -STOP -u 65533; sleep 60')).rejects.toMatchObject({
      code: 'sandbox_unavailable',
    })
    expect(await output(environment, 'echo on')).toBe('on')
    await environment.destroy()
    await own.close()
  })

  test('other sandboxes are out of reach', async () => {
    const other = await created()
    const secret = `secret-${Date.now()}`
    await run(other, `echo ${secret} >/home/user/file; echo ${secret} >/dev/shm/f; (sleep 4343 &)`)
    const line = `grep -rs ${secret} /home /tmp /dev/shm /run; grep -ls ${secret} /proc/[0-9]*/environ; pgrep -cf 'sleep 4343$'; tail -n +3 /proc/net/dev | cut -d: -f1`
    expect((await output(await environmentOf(), line)).split(/\s+/)).toEqual(['0', 'lo'])
    await other.destroy()
  })
})
