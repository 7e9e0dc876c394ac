import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId } from '../../src/db/id.ts'
import { runCommand } from '../../src/environment/run-command.ts'
import type { Backend, Environment, PluginContext } from '../../src/plugin-api/index.ts'

/**
 * What root inside tries to get out. Each row is a program of Python that says what it got; `refused` takes what the
 * kernel must refuse. HOST is a directory of the host with the files `secret` and `target`, PEER the id of another
 * environment, SECRET what is written in both.
 */
const rows: [string, string][] = [
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
