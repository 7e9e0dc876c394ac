import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId } from '../../src/db/id.ts'
import { runCommand } from '../../src/environment/run-command.ts'
import type { Backend, Environment, PluginContext } from '../../src/plugin-api/index.ts'
import { expectLimitsKept, expectNoneEscapes } from './marks.ts'
import { expectOwnFilesRefused } from './own-files.ts'

/**
 * What root inside tries to get out. Each row is a program of Python that says what it got; `refused` takes what the
 * kernel must refuse. HOST is a directory of the host with the files `secret` and `target`, PEER the id of another
 * environment, SECRET what is written in both.
 */
const rows: [string, string][] = [
  [
    'reads of the host by links',
    `
os.symlink(HOST + '/secret', 'link'); os.symlink(HOST, 'directory')
for path in ['link', 'directory/secret', HOST + '/secret', '../' * 40 + HOST + '/secret']: sees_none(path)
for start in ['/proc/1/root', '/proc/self/root', '/proc/1/cwd', '/proc/self/cwd/../..', '/proc/thread-self/root']: sees_none(start + HOST + '/secret')
for fd in os.listdir('/proc/self/fd'): sees_none('/proc/self/fd/' + fd + '/../..' + HOST + '/secret')`,
  ],
  [
    'hard links to files of the host',
    `
refused('link', lambda: os.link(HOST + '/secret', 'hard'))
for root in ['/proc/1/root', '/proc/self/root']: refused('link by ' + root, lambda: os.link(root + HOST + '/secret', 'hard'))
refused('linkat of a descriptor', lambda: os.link('/proc/self/fd/' + str(os.open('/proc', os.O_PATH)) + '/1/exe', 'hard'))`,
  ],
  [
    'renames over files of the host',
    `
open('mine', 'w').write('overwritten')
for root in ['', '/proc/1/root', '/proc/self/root']: refused('rename to ' + root, lambda: os.rename('mine', root + HOST + '/target'))
os.symlink(HOST + '/target', 'to'); os.symlink(HOST, 'into')
refused('rename into', lambda: os.rename('mine', 'into/target'))
try: open('to', 'w').write('overwritten')
except OSError: pass`,
  ],
  [
    'a chroot that is left twice',
    `
os.makedirs('cage', exist_ok=True)
up = os.open('/', os.O_RDONLY)
try: os.chroot('cage'); os.fchdir(up)
except OSError: pass
for _ in range(40): os.chdir('..')
try: os.chroot('.')
except OSError: pass
sees_none(HOST.lstrip('/') + '/secret'); sees_none(HOST + '/secret')`,
  ],
  [
    'devices of the host',
    `
import stat
for name, kind, major, minor in [('sda', stat.S_IFBLK, 8, 0), ('loop', stat.S_IFBLK, 7, 0), ('mem', stat.S_IFCHR, 1, 1), ('kmsg', stat.S_IFCHR, 1, 11), ('fuse', stat.S_IFCHR, 10, 229), ('kvm', stat.S_IFCHR, 10, 232), ('tun', stat.S_IFCHR, 10, 200)]:
  def use():
    os.mknod(name, kind | 0o600, os.makedev(major, minor))
    return os.open(name, os.O_RDWR)
  refused('mknod ' + name, use)
for name in ['sda', 'vda', 'nvme0n1', 'loop0', 'loop-control', 'mem', 'port', 'kmsg', 'kvm', 'fuse', 'net/tun', 'vsock', 'vhost-vsock', 'input/event0']: refused('open /dev/' + name, lambda: os.open('/dev/' + name, os.O_RDONLY))`,
  ],
  [
    'writes to the kernel by /proc and /sys',
    `
for path in ['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/modprobe', '/proc/sys/kernel/hostname', '/proc/sys/kernel/randomize_va_space', '/proc/sys/vm/drop_caches', '/proc/sys/vm/overcommit_memory', '/proc/sys/fs/binfmt_misc/register', '/proc/sys/net/ipv4/ip_forward', '/proc/sysrq-trigger', '/proc/irq/default_smp_affinity', '/proc/kcore', '/proc/kmem', '/sys/kernel/uevent_helper', '/sys/kernel/mm/transparent_hugepage/enabled', '/sys/power/state', '/sys/fs/cgroup/release_agent', '/sys/fs/cgroup/cgroup.procs', '/sys/fs/cgroup/memory/release_agent']: refused('write ' + path, lambda: os.open(path, os.O_WRONLY))
for path in ['/proc/kcore', '/proc/kmsg', '/proc/kpagecount', '/sys/kernel/debug', '/sys/firmware/efi']:
  refused('read ' + path, lambda: os.listdir(path) if os.path.isdir(path) and os.listdir(path) else os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 1) or no_bytes())`,
  ],
  [
    'mounts',
    `
for kind in ['tmpfs', 'proc', 'sysfs', 'cgroup', 'cgroup2', 'overlay', 'devtmpfs', 'debugfs', 'bpf']: refused('mount ' + kind, lambda: syscall(165, b'none', b'/mnt', kind.encode(), 0, b'lowerdir=/,upperdir=/tmp,workdir=/tmp'))
refused('bind', lambda: syscall(165, b'/', b'/mnt', None, 4096, None))
refused('remount', lambda: syscall(165, b'none', b'/proc', None, 32, None))
refused('propagate', lambda: syscall(165, b'none', b'/', None, (1 << 20) | 16384, None))
refused('umount', lambda: syscall(166, b'/proc', 2))
refused('pivot_root', lambda: syscall(155, b'/mnt', b'/mnt'))
refused('fsopen', lambda: syscall(430, b'tmpfs', 0))
refused('open_tree', lambda: syscall(428, -100, b'/', 1))
refused('move_mount', lambda: syscall(429, -100, b'/proc', -100, b'/mnt', 0))
refused('mount_setattr', lambda: syscall(442, -100, b'/proc', 0, b'\\0' * 32, 32))
refused('open_by_handle_at', lambda: syscall(304, -100, b'\\0' * 32, 0))`,
  ],
  [
    'namespaces',
    `
for name, flag in [('user', 0x10000000), ('mount', 0x20000), ('net', 0x40000000), ('pid', 0x20000000), ('uts', 0x4000000), ('ipc', 0x8000000), ('cgroup', 0x2000000)]:
  refused('unshare ' + name, lambda: syscall(272, flag))
  # A child that was made after all ends at once.
  def clone():
    if syscall(56, flag | 17, 0, 0, 0, 0) == 0: os._exit(0)
  refused('clone ' + name, clone)
for name in ['user', 'mnt', 'net', 'pid', 'uts', 'ipc']: refused('setns ' + name, lambda: syscall(308, os.open('/proc/1/ns/' + name, os.O_RDONLY), 0))`,
  ],
  [
    'the guest, which it would trace',
    `
pid = os.getpid()
while True:
  parent = int(open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[1])
  if parent == 0: break
  pid = parent
refused('attach', lambda: syscall(101, 16, pid, 0, 0))
refused('seize', lambda: syscall(101, 0x4206, pid, 0, 0))
buffer = ctypes.create_string_buffer(64)
class Piece(ctypes.Structure): _fields_ = [('at', ctypes.c_void_p), ('size', ctypes.c_size_t)]
here, there = Piece(ctypes.addressof(buffer), 64), Piece(0x400000, 64)
for name, number in [('read', 310), ('write', 311)]: refused('process_vm_' + name, lambda: syscall(number, pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
for name in ['mem', 'maps', 'environ', 'exe', 'root', 'cwd', 'fd/3']: refused('open ' + name, lambda: os.read(os.open(f'/proc/{pid}/{name}', os.O_RDONLY), 64) or no_bytes())
for name in ['mem', 'oom_score_adj', 'uid_map', 'setgroups', 'clear_refs']: refused('write ' + name, lambda: os.open(f'/proc/{pid}/{name}', os.O_WRONLY))
refused('pidfd_getfd', lambda: syscall(438, syscall(434, pid, 0), 0, 0))
refused('kcmp', lambda: syscall(312, pid, os.getpid(), 0, 0, 0))`,
  ],
  [
    'sockets beyond the network namespace',
    `
import socket
for name, family, kind in [('vsock', 40, 1), ('vsock datagram', 40, 2), ('alg', 38, 5), ('netlink audit', 16, 3), ('packet', 17, 3), ('raw', 2, 3), ('key', 15, 3), ('tipc', 30, 1)]:
  def use():
    end = socket.socket(family, kind, {'netlink audit': 9, 'key': 2, 'raw': 1}.get(name, 0)); end.settimeout(1)
    if family == 40: end.connect((2, 22))
    if family == 16: end.bind((0, 0)); os.read(end.fileno(), 1) if select_ready(end) else no_bytes()
    return end
  refused(name, use)
interfaces = [name for _, name in socket.if_nameindex()]
if interfaces != ['lo']: print('interfaces', interfaces)`,
  ],
  [
    'the kernel itself',
    `
for name, number, args in [('init_module', 175, (b'x', 1, b'')), ('finit_module', 313, (0, b'', 0)), ('kexec_load', 246, (0, 0, 0, 0)), ('bpf', 321, (5, b'\\0' * 128, 128)), ('perf_event_open', 298, (b'\\0' * 128, 0, -1, -1, 0)), ('userfaultfd', 323, (0,)), ('keyctl', 250, (0, -3, 0)), ('add_key', 248, (b'user', b'x', b'x', 1, -3)), ('reboot', 169, (0xfee1dead, 672274793, 0)), ('settimeofday', 164, (None, None)), ('swapon', 167, (b'/tmp/x', 0)), ('syslog', 103, (2, b'', 0)), ('iopl', 172, (3,)), ('acct', 163, (b'/tmp/x',))]: refused(name, lambda: syscall(number, *args))`,
  ],
  [
    'other environments',
    `
for top, directories, files in os.walk('/'):
  if top.startswith('/proc') or top.startswith('/sys'): directories[:] = []; continue
  if PEER in top or PEER in files: print('found', top)
for path in ['/tmp/' + PEER, '/home/user/' + PEER, '/dev/shm/' + PEER, '/proc/1/root/tmp/' + PEER]: sees_none(path)
import socket
for family, place in [(socket.AF_UNIX, chr(0) + PEER), (socket.AF_INET, ('127.0.0.1', 8199))]:
  end = socket.socket(family); end.settimeout(2); refused('connect', lambda: end.connect(place))
for pid in [name for name in os.listdir('/proc') if name.isdigit()]:
  try:
    if PEER in open(f'/proc/{pid}/cmdline').read() and int(pid) != os.getpid(): print('process', pid)
  except OSError: pass
libc.shmget.restype = ctypes.c_int
if libc.shmget(0x7b0c, 0, 0) >= 0: print('shared memory')
if libc.semget(0x7b0c, 0, 0) >= 0: print('semaphores')
if libc.msgget(0x7b0c, 0) >= 0: print('messages')
if ctypes.CDLL('librt.so.1').mq_open(('/' + PEER).encode(), os.O_RDWR) >= 0: print('message queue')`,
  ],
]

const prelude = `
import ctypes, errno, os, select
HOST, PEER, SECRET = os.environ['HOST_DIRECTORY'], os.environ['PEER'], os.environ['HOST_WORD'][::-1]
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def syscall(number, *args):
  ctypes.set_errno(0)
  result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
  code = ctypes.get_errno()
  if result >= 0: return result
  # Any other word would say that it was looked at.
  if code not in (errno.EPERM, errno.EACCES, errno.ENOSYS): print('call', number, 'ended with', errno.errorcode[code])
  raise OSError(code, '')
def refused(what, call):
  try: result = call()
  except OSError: return
  print(what, 'was not refused', result)
def no_bytes(): raise OSError('nothing was there')
def select_ready(end): return bool(select.select([end], [], [], 0.2)[0])
def sees_none(path):
  try: text = open(path, errors='replace').read(4096)
  except OSError: return
  if SECRET in text: print(path, 'shows the secret')
os.makedirs('/tmp/escape', exist_ok=True); os.chdir('/tmp/escape')
for name in os.listdir('.'): os.path.isdir(name) and not os.path.islink(name) or os.remove(name)
`

/** What the other environment keeps open while it is looked for. */
const peerProgram = `
import ctypes, os, socket, sys, time
word = sys.argv[1]; secret = os.environ['HOST_WORD'][::-1]
for place in ['/tmp/', '/home/user/', '/dev/shm/']: open(place + word, 'w').write(secret)
name = socket.socket(socket.AF_UNIX); name.bind(chr(0) + word); name.listen()
port = socket.socket(); port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); port.bind(('127.0.0.1', 8199)); port.listen()
if ctypes.CDLL(None).shmget(0x7b0c, 4096, 0o1666) < 0: sys.exit('no shared memory')
if ctypes.CDLL(None).semget(0x7b0c, 1, 0o1666) < 0 or ctypes.CDLL(None).msgget(0x7b0c, 0o1666) < 0: sys.exit('no semaphores or messages')
if ctypes.CDLL('librt.so.1').mq_open(('/' + word).encode(), os.O_CREAT | os.O_RDWR, 0o666, None) < 0: sys.exit('no message queue')
print('ready', flush=True); time.sleep(600)
`

/** Locks and watches what every environment has, and says what it could not lock and what it has seen. */
const watcherProgram = `
import ctypes, fcntl, os, sys
libc = ctypes.CDLL(None)
paths = ['/', '/etc', '/etc/passwd', '/usr', '/usr/bin', '/usr/bin/env', '/bin/sh', '/usr/lib', os.path.realpath(sys.executable)]
for top, directories, files in os.walk('/dev/.threadbox'): paths += [top] + [top + '/' + name for name in files]
if DEVICES: paths += ['/dev/' + name for name in ['null', 'zero', 'full', 'random', 'urandom']]
held = []
for path in paths:
  try: file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
  except OSError: continue
  held.append(file)
  try: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except OSError: print('locked by another:', path)
  try: fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
  except OSError: print('locked by another, as a record:', path)
watch = libc.inotify_init1(0o4000)
names = {libc.inotify_add_watch(watch, path.encode(), 0xfff): path for path in paths}
print('ready', flush=True)
if not sys.stdin.readline(): sys.exit()
try: events = os.read(watch, 65536)
except BlockingIOError: events = b''
if events: print('saw', names.get(int.from_bytes(events[:4], 'little')))
print('done', flush=True)
`

/** Escapes that every backend must hold against, as root inside. It runs unchanged on each, on the machine of the tests. */
export function describeEscapes(
  name: string,
  openBackend: (serveProxy: PluginContext['serveProxy']) => Promise<Backend>,
  /** Whether environments have device nodes that are not the host's. */
  { ownDevices = true } = {},
): void {
  describe(`escapes from ${name}: regression`, () => {
    const limits = { memoryMb: 512, processes: 200, cpus: 2, diskMb: 512 }
    // It comes to the environments backwards: nothing but the files has it as it is.
    const secret = `secret-${crypto.randomUUID()}`
    const directory = mkdtempSync(join(tmpdir(), 'threadbox-escapes-'))
    const peer = `peer-${crypto.randomUUID()}`
    const env = { HOST_DIRECTORY: directory, HOST_WORD: [...secret].reverse().join(''), PEER: peer }
    let backend: Backend
    let environment: Environment
    let other: Environment

    beforeAll(async () => {
      chmodSync(directory, 0o777)
      for (const name of ['secret', 'target']) {
        writeFileSync(join(directory, name), secret)
        chmodSync(join(directory, name), 0o666)
      }
      backend = await openBackend((_, socket) => void socket.destroy())
      const made = () => backend.create({ id: newId('env'), limits })
      ;[environment, other] = await Promise.all([made(), made()])
      const child = await other.spawn({ command: ['python3', '-c', peerProgram, peer], env })
      const { value } = await child.stdout.getReader().read()
      expect(Buffer.from(value ?? []).toString()).toBe('ready\n')
    }, 60_000)

    afterAll(async () => {
      for (const each of [environment, other]) await each?.destroy()
      await backend?.close()
      rmSync(directory, { recursive: true, force: true })
    }, 60_000)

    test.each(rows)(
      '%s',
      async (_, program) => {
        const { stdout, stderr } = await runCommand(environment, {
          command: ['python3', '-c', `${prelude}${program}\nprint('held')`],
          env,
          timeoutMs: 50_000,
        })
        expect([stdout, stderr]).toEqual(['held\n', ''])
        expect(readFileSync(join(directory, 'target'), 'utf8')).toBe(secret)
        expect((await runCommand(environment, { command: 'echo alive' })).stdout).toBe('alive\n')
      },
      60_000,
    )

    test("the guest's own files in /proc are not to be had", () => expectOwnFilesRefused(environment))

    test('root inside cannot take the limits of the guest', () => expectLimitsKept(environment))

    test('root inside cannot race the mark of what is started', async () => {
      const raced = await backend.create({ id: newId('env'), limits })
      await expectNoneEscapes(raced)
      await raced.destroy()
    })

    test('locks and watches on what every environment has reach no other, nor the host', async () => {
      const command = ['python3', '-c', `DEVICES = ${ownDevices ? 'True' : 'False'}${watcherProgram}`]
      const child = await environment.spawn({ command, stdin: 'pipe' })
      const output = child.stdout.getReader()
      const said = async () => Buffer.from((await output.read()).value ?? []).toString()
      expect(await said()).toBe('ready\n')
      const theirs = await runCommand(other, { command, timeoutMs: 20_000 })
      expect([theirs.stdout, theirs.stderr]).toEqual(['ready\n', ''])
      for (const path of ['/usr/bin/env', '/bin/sh', '/dev/null']) {
        Bun.spawnSync([path === '/dev/null' ? '/bin/sh' : path, '-c', 'true'], { stdin: Bun.file('/dev/null') })
        readFileSync(path === '/dev/null' ? '/usr/bin/env' : path)
        const { exitCode } = Bun.spawnSync(['flock', '--nonblock', path, 'true'])
        if (ownDevices || path !== '/dev/null') expect([path, exitCode]).toEqual([path, 0])
      }
      const writer = child.stdin?.getWriter()
      await writer?.write(Buffer.from('\n'))
      expect(await said()).toBe('done\n')
      await child.exited
    })

    test('the file operations follow links, renames and FIFOs only inside', async () => {
      const { files } = environment
      await runCommand(environment, {
        command:
          'mkdir -p /srv/e; cd /srv/e; ln -sfn "$HOST_DIRECTORY" out; ln -sf "$HOST_DIRECTORY/target" file; mkfifo fifo; echo mine >mine',
        env,
      })
      const codeOf = (work: Promise<unknown>) =>
        work.then(
          () => 'done',
          error => error.code,
        )
      expect(await codeOf(files.read('/srv/e/out/secret'))).toBe('file_not_found')
      expect(await codeOf(files.read(`/proc/1/root${directory}/secret`))).not.toBe('done')
      expect(await codeOf(files.read(`/../../..${directory}/secret`))).toBe('file_not_found')
      expect(await codeOf(files.read('/srv/e/fifo'))).toBe('invalid_request')
      // These make files inside, at the same path, or nothing.
      await codeOf(files.write('/srv/e/file', Buffer.from('overwritten')))
      await codeOf(files.write('/srv/e/out/made', Buffer.from('made')))
      await codeOf(files.rename('/srv/e/mine', `${directory}/target`))
      await codeOf(files.remove(`/proc/1/root${directory}/secret`))
      expect(['secret', 'target'].map(name => readFileSync(join(directory, name), 'utf8'))).toEqual([secret, secret])
      expect(existsSync(join(directory, 'made'))).toBe(false)
    })
  })
}
