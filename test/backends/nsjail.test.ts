import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { getDataDirectoryKey } from '../../plugins/nsjail/host/layout.ts'
import { createNsjailBackend, type NsjailOptions } from '../../plugins/nsjail/index.ts'
import type { Backend, Environment, Limits, SpawnOptions } from '../../src/plugin-api/index.ts'
import { leftovers, processesNamed, readText, tracesOf } from '../support/leftovers.ts'

setDefaultTimeout(60_000)

const repository = join(import.meta.dir, '../..')
const isRoot = process.getuid?.() === 0
const limits: Limits = { memoryMb: 1024, processes: 256, cpus: 2, diskMb: 512 }

let scratch: string
let executable: string
let nsjailPath: string
const backends: Backend[] = []
const log: string[] = []

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'nsjail-test-'))
  executable = join(scratch, 'guest')
  await compile(executable, `import { serveGuest } from '${repository}/src/guest/inside/serve.ts'\nserveGuest(3)\n`)
  const cached = join(repository, '.cache/nsjail/nsjail/bin/nsjail')
  nsjailPath = existsSync(cached) ? cached : (Bun.which('nsjail') ?? cached)
})

afterAll(async () => {
  for (const backend of backends) {
    for (const id of await backend.list()) await (await backend.open(id))?.destroy()
    await backend.close()
  }
  rmSync(scratch, { recursive: true, force: true })
})

async function compile(target: string, source: string): Promise<void> {
  const entry = `${target}.ts`
  writeFileSync(entry, source)
  const flags = ['--compile', '--no-compile-autoload-bunfig', '--no-compile-autoload-dotenv']
  const build = Bun.spawn([process.execPath, 'build', ...flags, entry, '--outfile', target], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  expect(await build.exited).toBe(0)
}

/** Beside it is the key of the data directory. */
const pidOf = (text: string) => text.split(' ')[0] ?? ''

const newId = () => `env_${Bun.randomUUIDv7()}`
const newDirectory = (name: string) => mkdtempSync(join(scratch, `${name}-`))

function backendIn(dataDirectory: string, options: Partial<NsjailOptions> = {}): Backend {
  const backend = createNsjailBackend({
    dataDirectory,
    nsjailPath,
    executable,
    log: line => log.push(line),
    ...options,
  })
  backends.push(backend)
  return backend
}

/** One backend for the tests that do not look at the data directory as a whole. */
let shared: Backend | undefined
async function created(spec: { base?: string; limits?: Limits } = {}): Promise<Environment> {
  shared ??= backendIn(newDirectory('data'))
  return shared.create({ id: newId(), limits, ...spec })
}

interface Outcome {
  stdout: string
  stderr: string
  exitCode: number
}

async function run(
  environment: Environment,
  command: SpawnOptions['command'],
  options: Partial<SpawnOptions> = {},
): Promise<Outcome> {
  const child = await environment.spawn({ command, ...options })
  const [stdout, stderr, { exitCode }] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { stdout, stderr, exitCode }
}

const output = async (environment: Environment, command: string) => (await run(environment, command)).stdout.trim()

async function until(what: string, isTrue: () => boolean | Promise<boolean>, withinMs = 10_000): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`)
    await Bun.sleep(10)
  }
}

/** User ids of the host under which processes with this word in their arguments run. */
const ownersOf = (word: string) =>
  processesNamed(word).map(pid => Number(/^Uid:\s+(\d+)/m.exec(readText(`/proc/${pid}/status`))?.[1]))

/** A root file system of a shell and a few tools with the libraries that they need. */
function makeRootfs(directory: string): string {
  for (const name of ['sh', 'ls', 'cat', 'id', 'mkdir', 'rm']) {
    const program = Bun.which(name) ?? ''
    const listing = Bun.spawnSync(['ldd', program]).stdout.toString()
    const files = [...listing.matchAll(/(\/\S+) \(0x/g)].map(match => match[1] ?? '')
    cpSync(program, join(directory, 'bin', name), { dereference: true })
    for (const file of files) cpSync(file, join(directory, file), { dereference: true })
  }
  mkdirSync(join(directory, 'etc'))
  writeFileSync(join(directory, 'etc/only-here'), 'yes\n')
  chmodSync(directory, 0o755)
  return directory
}

/** Without root there is `nsjail-user.test.ts`. */
if (isRoot)
  describe('nsjail as root', () => {
    test('each environment has user ids of its own, and root in it is nobody outside', async () => {
      const [one, two] = await Promise.all([created(), created()])
      const word = `3${Date.now()}`
      for (const environment of [one, two]) await run(environment, `sleep ${word} >/dev/null 2>&1 &`)
      await until('both run', () => ownersOf(word).length === 2)
      const owners = ownersOf(word)
      expect(new Set(owners).size).toBe(2)
      for (const owner of owners) {
        expect(owner).toBeGreaterThanOrEqual(0x70000000)
        expect(owner % 65536).toBe(0)
      }
      expect(one.confinement.join('\n')).toContain('its own user ids')
      expect(await output(one, 'id -u')).toBe('0')
      await Promise.all([one.destroy(), two.destroy()])
      expect(processesNamed(word)).toEqual([])
    })

    test('an ordinary user can be had inside, and owns what he makes', async () => {
      const environment = await created()
      const line =
        "setpriv --reuid=1000 --regid=1000 --clear-groups sh -c 'id -u; echo x >/tmp/mine; id -un' && stat -c %u /tmp/mine"
      expect(await output(environment, line)).toBe('1000\nuser\n1000')
      await environment.destroy()
    })

    test('programs read and write UTF-8, unless a language of another kind is asked for', async () => {
      const environment = await created()
      const counts = `printf é | wc -m; x=é; echo \${#x}; python3 -c 'import sys; print(sys.stdout.encoding)'; echo $SHELL`
      expect(await output(environment, counts)).toBe('1\n1\nutf-8\n/bin/bash')
      const plain = await run(environment, 'printf é | wc -m; printenv LC_CTYPE', { env: { LANG: 'C' } })
      expect(plain.stdout).toBe('2\n')
      await environment.destroy()
    })

    test('a command has its three descriptors alone, with a terminal too', async () => {
      const environment = await created()
      // The fourth is the directory that is listed.
      const command = 'echo $(ls /proc/self/fd)'
      expect(await output(environment, command)).toBe('0 1 2 3')
      const { stdout } = await run(environment, command, { pty: { columns: 80, rows: 24 } })
      expect(stdout.trim()).toBe('0 1 2 3')
      await environment.destroy()
    })

    test('a program is found in the PATH that it is given, and a word that Linux would cut is refused', async () => {
      const environment = await created()
      await run(environment, 'mkdir own; printf "#!/bin/sh\\necho mine \\$1" >own/program; chmod +x own/program')
      const env = { PATH: '/home/user/own:/usr/bin:/bin' }
      expect((await run(environment, ['program', 'word'], { env })).stdout).toBe('mine word\n')
      await expect(run(environment, ['program'])).rejects.toThrow('no such program in PATH')
      await expect(run(environment, ['echo', 'a\0b', 'c'])).rejects.toMatchObject({ code: 'invalid_request' })
      await environment.destroy()
    })

    test('what a command prints comes whole, be it as much as a pipe has room for or more, at its end or long before', async () => {
      const environment = await created()
      for (const bytes of [0, 1, 65_535, 65_536, 65_537, 1_000_000]) {
        for (const wait of ['', 'sleep 0.01;', 'sleep 0.05;']) {
          const { stdout, stderr } = await run(
            environment,
            `${wait} head -c ${bytes} /dev/zero | tee /dev/stderr; ${wait}`,
          )
          expect([stdout.length, stderr.length]).toEqual([bytes, bytes])
        }
      }
      await environment.destroy()
    })

    test('destroy leaves nothing: processes, mounts, disks, cgroups, files', async () => {
      const data = newDirectory('data')
      const backend = backendIn(data)
      const environment = await backend.create({ id: newId(), limits })
      await run(environment, 'echo kept >/home/user/file; setsid sleep 1000 >/dev/null 2>&1 &')
      expect(readText('/proc/self/mountinfo')).not.toContain(environment.id)
      expect(tracesOf(environment.id).length).toBeGreaterThan(0)
      await Promise.all([environment.destroy(), environment.destroy()])
      await environment.destroy()
      expect(await leftovers(environment.id)).toEqual([])
      expect(readdirSync(join(data, 'sandboxes'))).toEqual([])
      await until('the trash is empty', () => readdirSync(join(data, 'trash')).length === 0)
      expect(await backend.open(environment.id)).toBeUndefined()
      await expect(run(environment, 'true')).rejects.toMatchObject({ code: 'sandbox_not_found' })
      await backend.close()
      expect(readdirSync(join(data, 'spare'))).toEqual([])
    })

    test('no process outlives destroy, and its id can be used again at once', async () => {
      const data = newDirectory('data')
      const backend = backendIn(data)
      const id = newId()
      for (const round of ['first', 'second', 'third']) {
        const environment = await backend.create({ id, limits })
        const made = 'ls /home/user; touch /home/user/made; (setsid sleep 1000 &) >/dev/null 2>&1'
        expect((await run(environment, made)).stdout).not.toContain('made')
        await environment.destroy()
        expect([round, tracesOf(id).filter(line => line.startsWith('process') && !line.includes('/trash/'))]).toEqual([
          round,
          [],
        ])
      }
      const last = await backend.create({ id, limits })
      await until('the removals have ended', () => readdirSync(join(data, 'trash')).length === 0)
      const [cgroup = ''] = globSync(`/sys/fs/cgroup/{,pids/}threadbox/*.${id}/cgroup.procs`)
      expect(readText(cgroup)).not.toBe('')
      expect(await output(last, 'echo alive')).toBe('alive')
      await last.destroy()
      expect(await leftovers(id)).toEqual([])
      await backend.close()
    })

    test('each disk is a file system of its own, without a flaw', async () => {
      const data = newDirectory('data')
      const backend = backendIn(data)
      const made = await Promise.all(
        [1, 2, 3].map(() => backend.create({ id: newId(), limits: { ...limits, diskMb: 64 } })),
      )
      const identities = new Set<string>()
      for (const environment of made) {
        await run(environment, 'mkdir -p /opt/a/b && echo kept >/opt/a/b/file')
        await environment.pause!()
        const image = join(data, 'sandboxes', environment.id, 'disk.img')
        const check = Bun.spawnSync(['e2fsck', '-fn', image])
        expect([check.exitCode, check.stdout.toString()]).toMatchObject([0, expect.anything()])
        const about = Bun.spawnSync(['dumpe2fs', '-h', image]).stdout.toString()
        for (const name of ['Filesystem UUID', 'Directory Hash Seed']) {
          identities.add(new RegExp(`^${name}: +(\\S+)$`, 'm').exec(about)?.[1] ?? '')
        }
        expect(await output(environment, 'cat /opt/a/b/file; stat -c %u /opt /home/user')).toBe('kept\n0\n0')
      }
      expect(identities.size).toBe(6)
      await Promise.all(made.map(environment => environment.destroy()))
      await backend.close()
    })

    test('what is only in the cgroups of a jail, as when its nsjail was killed, does not outlive destroy either', async () => {
      const data = newDirectory('data')
      const backend = backendIn(data)
      const id = newId()
      const environment = await backend.create({ id, limits })
      const word = `4${Date.now()}`
      const lost = Bun.spawn(['sleep', word], { stdio: ['ignore', 'ignore', 'ignore'] })
      const [procs = ''] = globSync(`/sys/fs/cgroup/{,pids/}threadbox/*.${id}/cgroup.procs`)
      writeFileSync(procs, String(lost.pid))
      process.kill(Number(pidOf(readText(join(data, 'sandboxes', id, 'pid')))), 'SIGKILL')
      await environment.destroy()
      expect(processesNamed(word)).toEqual([])
      await lost.exited
      expect(await leftovers(id)).toEqual([])
      await backend.close()
    })

    test('a server that is killed right after a destroy leaves nothing to its successor', async () => {
      const data = newDirectory('data')
      const id = newId()
      const script = join(scratch, 'destroyer.ts')
      writeFileSync(
        script,
        `import { createNsjailBackend } from '${repository}/plugins/nsjail/index.ts'
      const options = { dataDirectory: '${data}', nsjailPath: '${nsjailPath}', executable: '${executable}' }
      const environment = await createNsjailBackend({ ...options, log() {} }).create({ id: '${id}', limits: ${JSON.stringify(limits)} })
      await environment.files.write('/home/user/file', new Uint8Array(4_000_000))
      await environment.destroy()
      process.kill(process.pid, 'SIGKILL')`,
      )
      const server = Bun.spawn([process.execPath, script], { stdio: ['ignore', 'inherit', 'inherit'] })
      await server.exited
      expect(server.signalCode).toBe('SIGKILL')
      expect(readdirSync(join(data, 'sandboxes'))).toEqual([])
      expect(readdirSync(join(data, 'trash'))).not.toEqual([])

      const backend = backendIn(data)
      expect(await backend.list()).toEqual([])
      await until('the trash is empty', () => readdirSync(join(data, 'trash')).length === 0)
      expect(await leftovers(id, data)).toEqual([])
      await backend.close()
    })

    test('a create that fails leaves nothing and says why', async () => {
      const data = newDirectory('data')
      const backend = backendIn(data, { nsjailPath: '/bin/false' })
      const id = newId()
      await expect(backend.create({ id, limits })).rejects.toMatchObject({ code: 'sandbox_unavailable' })
      expect(await leftovers(id)).toEqual([])
      expect(readdirSync(join(data, 'sandboxes'))).toEqual([])

      const silent = backendIn(newDirectory('data'), { executable: '/bin/true' })
      await expect(silent.create({ id, limits })).rejects.toMatchObject({ code: 'sandbox_unavailable' })
      expect(await leftovers(id)).toEqual([])
      await expect(backend.create({ id, base: '/nowhere', limits })).rejects.toMatchObject({ code: 'invalid_request' })
      await expect(backend.create({ id, base: '/', limits })).rejects.toMatchObject({ code: 'invalid_request' })
      await Promise.all([backend.close(), silent.close()])
    })

    test('a jail outlives its backend object, and the next one goes on with it', async () => {
      const data = newDirectory('data')
      const first = backendIn(data)
      const { id } = await first.create({ id: newId(), limits })
      const before = await first.open(id)
      // Until the program is there, the process is a copy of the shell.
      const start = 'sleep 1000 >/dev/null 2>&1 & until grep -q sleep /proc/$!/comm; do :; done; echo $!'
      const pid = await output(before!, start)
      await first.close()

      const second = backendIn(data)
      expect(await second.list()).toEqual([id])
      const environment = await second.open(id)
      expect(await output(environment!, `cat /proc/${pid}/comm`)).toBe('sleep')
      await environment!.destroy()
      expect(await leftovers(id)).toEqual([])
      await second.close()
    })

    test('a jail is found whose server died before it had noted the pid', async () => {
      const data = newDirectory('data')
      const first = backendIn(data)
      const ids = [newId(), newId()] as const
      for (const id of ids) {
        const environment = await first.create({ id, limits })
        await run(environment, 'sleep 1000 >/dev/null 2>&1 &')
      }
      await first.close()
      for (const id of ids) writeFileSync(join(data, 'sandboxes', id, 'pid'), 'launching')
      // One was being created, the other started again.
      rmSync(join(data, 'sandboxes', ids[0], 'meta.json'))

      const second = backendIn(data)
      expect(await second.list()).toEqual([ids[1]])
      expect(await leftovers(ids[0])).toEqual([])
      const environment = await second.open(ids[1])
      expect(await output(environment!, 'pgrep -c sleep')).toBe('1')
      await environment!.destroy()
      expect(await leftovers(ids[1])).toEqual([])
      await second.close()
    })

    test('a jail does not inherit how its server stands with the OOM killer', async () => {
      const data = newDirectory('data')
      const script = join(scratch, 'protected.ts')
      writeFileSync(
        script,
        `import { createNsjailBackend } from '${repository}/plugins/nsjail/index.ts'
      const options = { dataDirectory: '${data}', nsjailPath: '${nsjailPath}', executable: '${executable}' }
      const backend = createNsjailBackend({ ...options, log: line => console.error(line) })
      const environment = await backend.create({ id: 'protected', limits: {} })
      const child = await environment.spawn({ command: 'cat /proc/self/oom_score_adj /proc/1/oom_score_adj' })
      console.log((await new Response(child.stdout).text()).trim().replace('\\n', ' '))
      await environment.destroy()
      await backend.close()`,
      )
      // Protecting, which is a number below 0, takes a capability that not every root has.
      const protect = 'echo 300 >/proc/$$/oom_score_adj; exec "$@"'
      const server = Bun.spawn(['sh', '-c', protect, 'sh', process.execPath, script], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      expect(await new Response(server.stdout).text()).toBe('0 0\n')
      expect(await server.exited).toBe(0)
    })

    test('a jail outlives kill -9 of its server', async () => {
      const data = newDirectory('data')
      const id = newId()
      const script = join(scratch, 'server.ts')
      writeFileSync(
        script,
        `import { createNsjailBackend } from '${repository}/plugins/nsjail/index.ts'
      const options = { dataDirectory: '${data}', nsjailPath: '${nsjailPath}', executable: '${executable}' }
      const environment = await createNsjailBackend({ ...options, log() {} }).create({ id: '${id}', limits: { processes: 64 } })
      const child = await environment.spawn({ command: 'sleep 1000 >/dev/null 2>&1 & echo $!' })
      console.log((await new Response(child.stdout).text()).trim())
      setInterval(() => {}, 1000)`,
      )
      const server = Bun.spawn([process.execPath, script], { stdout: 'pipe', stderr: 'inherit' })
      const { value } = await server.stdout.getReader().read()
      server.kill('SIGKILL')
      await server.exited

      const backend = backendIn(data)
      const environment = await backend.open(id)
      expect(await output(environment!, `cat /proc/${new TextDecoder().decode(value).trim()}/comm`)).toBe('sleep')
      await environment!.destroy()
      expect(await leftovers(id)).toEqual([])
      await backend.close()
    })

    test('a jail that a dying server left outside of its cgroups is put back', async () => {
      const data = newDirectory('data')
      const first = backendIn(data)
      const { id } = await first.create({ id: newId(), limits })
      await first.close()
      const nsjail = pidOf(readText(join(data, 'sandboxes', id, 'pid')))
      const inside = readText(`/proc/${nsjail}/task/${nsjail}/children`).trim()
      const cgroups = () => [nsjail, inside].map(pid => readText(`/proc/${pid}/cgroup`).split(`.${id}`).length - 1)
      const [limited] = cgroups()
      expect(limited).toBeGreaterThan(0)
      for (const root of globSync('/sys/fs/cgroup/{,memory/,pids/,cpu/}cgroup.procs')) {
        for (const pid of [nsjail, inside]) writeFileSync(root, pid)
      }
      expect(cgroups()).toEqual([0, 0])

      const second = backendIn(data)
      const environment = await second.open(id)
      expect(await output(environment!, 'echo alive')).toBe('alive')
      expect(cgroups()).toEqual([limited!, limited!])
      await environment!.destroy()
      await second.close()
    })

    test('what a server that died had begun is removed; a damaged file is left to the operator', async () => {
      const data = newDirectory('data')
      const [begun, damaged] = [newId(), newId()]
      mkdirSync(join(data, 'sandboxes', begun, 'box'), { recursive: true })
      mkdirSync(join(data, 'sandboxes', damaged), { recursive: true })
      writeFileSync(join(data, 'sandboxes', damaged, 'meta.json'), '{"version":1')
      mkdirSync(join(data, 'trash/old'), { recursive: true })
      mkdirSync(join('/run/threadbox', `${getDataDirectoryKey(data)}.${begun}`), { recursive: true })
      const backend = backendIn(data)
      expect(await backend.list()).toEqual([])
      expect(readdirSync(join(data, 'sandboxes'))).toEqual([damaged])
      expect(existsSync(join('/run/threadbox', `${getDataDirectoryKey(data)}.${begun}`))).toBe(false)
      expect(log.some(line => line.includes(damaged))).toBe(true)
      await until('the trash is empty', () => readdirSync(join(data, 'trash')).length === 0)
      await backend.close()
    })

    test('pause ends the processes and keeps the files; the next use starts it again', async () => {
      const environment = await created()
      await run(environment, 'echo kept >/home/user/file; echo tool >/usr/local/bin/tool; sleep 1000 >/dev/null 2>&1 &')
      await environment.pause!()
      expect(tracesOf(environment.id).filter(line => line.startsWith('process'))).toEqual([])
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => output(environment, 'cat /home/user/file /usr/local/bin/tool')),
      )
      expect(new Set(answers)).toEqual(new Set(['kept\ntool']))
      expect(await output(environment, 'pgrep sleep')).toBe('')
      await environment.destroy()
    })

    test('an idle environment is paused by itself, a busy one is not', async () => {
      const backend = backendIn(newDirectory('data'), { idleMs: 300 })
      const [idle, busy] = await Promise.all([
        backend.create({ id: newId(), limits }),
        backend.create({ id: newId(), limits }),
      ])
      const child = await busy.spawn({ command: 'sleep 2; echo done' })
      const isRunning = (id: string) => tracesOf(id).some(line => line.startsWith('process'))
      await until('the idle one is paused', () => !isRunning(idle.id))
      expect(await new Response(child.stdout).text()).toBe('done\n')
      expect(await output(idle, 'echo again')).toBe('again')
      await Promise.all([idle.destroy(), busy.destroy()])
      await backend.close()
    })

    test('a jail that dies is started again by the next use', async () => {
      const environment = await created()
      const nsjail = Number(pidOf(readText(globSync(join(scratch, `data-*/sandboxes/${environment.id}/pid`))[0] ?? '')))
      process.kill(nsjail, 'SIGKILL')
      await until('nsjail is gone', () => !existsSync(`/proc/${nsjail}/exe`))
      // A use before the server has noticed it fails; the one after that starts the jail.
      await until('it runs again', async () => (await output(environment, 'echo again').catch(() => '')) === 'again')
      await environment.destroy()
      expect(await leftovers(environment.id)).toEqual([])
    })

    test.each([
      ['/etc/ld.so.preload', 'echo /opt/libnss_enter.so.2 >/etc/ld.so.preload'],
      [
        '/etc/nsswitch.conf',
        'echo hosts: enter >/etc/nsswitch.conf; echo /opt >/etc/ld.so.conf.d/opt.conf; PATH=$PATH:/sbin ldconfig',
      ],
    ])('a library that a jail names in %s does not enter the guest: regression', async (_, plant) => {
      const environment = await created()
      const source = `#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void enter(void) { if (getpid() == 1) close(creat("/opt/entered", 0644)); }
`
      await environment.files.write('/opt/enter.c', new TextEncoder().encode(source))
      const built = await run(environment, `cc -shared -fPIC -o /opt/libnss_enter.so.2 /opt/enter.c && { ${plant}; }`)
      expect(built).toMatchObject({ exitCode: 0 })
      await environment.pause?.()
      await expect(environment.connect(9)).rejects.toMatchObject({ code: 'port_unreachable' })
      expect(await output(environment, 'ls /opt')).toBe('enter.c\nlibnss_enter.so.2')
      await environment.destroy()
    })

    test('many at once, and destroying while they are used', async () => {
      const backend = backendIn(newDirectory('data'))
      const environments = await Promise.all(Array.from({ length: 8 }, () => backend.create({ id: newId(), limits })))
      const names = await Promise.all(environments.map(environment => output(environment, 'hostname')))
      expect(new Set(names)).toEqual(new Set(['sandbox']))
      const used = environments.map(environment => run(environment, 'sleep 1000').catch(error => error.code))
      await Bun.sleep(100)
      const opened = environments.map(environment => {
        const destroyed = environment.destroy()
        return destroyed.then(() => backend.open(environment.id))
      })
      expect(await Promise.all(opened)).toEqual(environments.map(() => undefined))
      for (const outcome of await Promise.all(used)) expect(outcome).toBe('sandbox_unavailable')
      expect(await leftovers(...environments.map(({ id }) => id))).toEqual([])
      expect(await backend.list()).toEqual([])
      await backend.close()
    })

    test('a link that a jail puts where something is mounted refuses the start, and leads nowhere', async () => {
      const outside = newDirectory('outside')
      for (const target of ['proc', 'dev', 'usr']) {
        const environment = await created({ limits: {} })
        await environment.pause!()
        const [upper] = globSync(join(scratch, `data-*/sandboxes/${environment.id}/box/upper`))
        rmSync(join(upper!, target), { recursive: true, force: true })
        symlinkSync(outside, join(upper!, target))
        await expect(run(environment, 'true')).rejects.toMatchObject({ code: 'sandbox_unavailable' })
        expect(readdirSync(outside)).toEqual([])
        await environment.destroy()
        expect(await leftovers(environment.id)).toEqual([])
      }
    })

    test('from inside, what is mounted cannot be replaced', async () => {
      const environment = await created()
      const line =
        'for path in /proc /dev /usr /dev/.threadbox; do mv $path /elsewhere && echo moved; rm -rf $path/null; rmdir $path && echo removed; done'
      expect(await output(environment, line)).not.toMatch(/moved|removed/)
      expect(await output(environment, 'touch /dev/.threadbox/x /usr/bin/x || kill -9 1; kill -STOP 1; echo on')).toBe(
        'on',
      )
      await environment.pause!()
      expect(await output(environment, 'echo on')).toBe('on')
      await environment.destroy()
    })

    test('a root file system of its own', async () => {
      const base = makeRootfs(newDirectory('rootfs'))
      symlinkSync('../run/systemd/resolve/stub-resolv.conf', join(base, 'etc/resolv.conf'))
      const environment = await created({ base })
      expect(await output(environment, 'cat /etc/only-here /etc/hosts && id -u')).toMatch(
        /^yes\n127\.0\.0\.1 localhost.*\n.*\n0$/,
      )
      expect(await output(environment, 'cat /etc/resolv.conf')).toStartWith('nameserver 127.0.0.1\n')
      expect(await output(environment, 'ls /usr 2>&1 || echo none')).toContain('none')
      expect(
        await output(environment, 'rm /etc/only-here && mkdir -p /home/user/made /etc/new && ls /etc /home/user'),
      ).toContain('made')
      expect(readFileSync(join(base, 'etc/only-here'), 'utf8')).toBe('yes\n')
      expect(existsSync(join(base, 'etc/new'))).toBe(false)
      await environment.pause!()
      expect(await output(environment, 'ls /etc')).not.toContain('only-here')
      await environment.destroy()
    })

    test('the host is out of reach, and so are other sandboxes', async () => {
      const [one, two] = await Promise.all([created(), created()])
      const secret = `secret-${Date.now()}`
      writeFileSync(join(scratch, 'host-file'), secret)
      chmodSync(join(scratch, 'host-file'), 0o644)
      await run(one, `echo ${secret} >/home/user/file; echo ${secret} >/tmp/${secret}`)
      const paths = [join(scratch, 'host-file'), '/etc/hostname', dirname(scratch), '/root', '/run/threadbox', '/home']
      const seen = await output(
        two,
        `grep -rs ${secret} ${paths.join(' ')} /proc/1/root /tmp /home; ls /run /root /sys; cat /etc/shadow /proc/cmdline`,
      )
      expect(seen).not.toContain(secret)
      expect(seen).not.toMatch(/:\$/)
      expect(seen).not.toContain('root=')
      expect(
        await output(two, 'cat /proc/1/environ /proc/1/maps; readlink /proc/1/exe /proc/1/fd/*; ps -e -o pid= | wc -l'),
      ).toMatch(/^\d+$/)
      expect(await output(two, 'cat /proc/net/dev | tail -n +3 | cut -d: -f1')).toBe('lo')
      await Promise.all([one.destroy(), two.destroy()])
    })

    test("programs can be installed into /usr/local; the rest of /usr is the host's", async () => {
      const environment = await created()
      const line = `cd /usr/local && for path in bin sbin lib lib/node_modules share share/man/man1 include etc; do touch $path/x || echo no $path; done
      for path in $(ls -d /usr/lib/python3.* | grep -o 'python3[.][0-9]*$' | sort -u); do touch lib/$path/dist-packages/x || echo no $path; done
      touch /usr/bin/x && echo wrote; ls -A /home/user; stat -c %u /home/user; touch /tmp/x /etc/x /root/x /opt/x /home/user/x || echo no`
      expect(await output(environment, line)).toBe('.npmrc\n0')
      expect(existsSync('/usr/local/bin/x')).toBe(false)
      await environment.destroy()
    })

    test('a memory limit kills the hungry process alone', async () => {
      const environment = await created({ limits: { ...limits, memoryMb: 256 } })
      const hungry = await run(environment, ['python3', '-c', 'b = [bytearray(1 << 20) for i in range(1024)]'])
      expect(hungry.exitCode).toBe(137)
      expect(await output(environment, 'echo alive')).toBe('alive')
      await environment.destroy()
    })

    test('a fork bomb stops at the process limit and can be killed', async () => {
      const environment = await created({ limits: { ...limits, processes: 100 } })
      const abort = new AbortController()
      const bomb = run(environment, 'bomb() { bomb | bomb & bomb; }; bomb', { signal: abort.signal }).catch(() => {})
      await Bun.sleep(500)
      const running = readText(globSync(`/sys/fs/cgroup/{,pids/}threadbox/*.${environment.id}/pids.current`)[0] ?? '')
      expect(Number(running)).toBeLessThanOrEqual(100 + 64)
      abort.abort()
      await bomb
      expect(await output(environment, 'echo alive')).toBe('alive')
      await environment.destroy()
      expect(await leftovers(environment.id)).toEqual([])
    })

    test('a jail whose guest can start nothing any more starts anew with its next use: regression', async () => {
      const data = newDirectory('wedged')
      const environment = await backendIn(data).create({ id: newId(), limits })
      await run(environment, 'echo kept >/tmp/f')
      const nsjail = pidOf(readText(join(data, 'sandboxes', environment.id, 'pid')))
      const guest = readText(`/proc/${nsjail}/task/${nsjail}/children`).trim()
      expect(Bun.spawnSync(['prlimit', '--pid', guest, '--nofile=1:1']).exitCode).toBe(0)
      await expect(run(environment, 'true')).rejects.toMatchObject({ code: 'sandbox_unavailable' })
      expect(await output(environment, 'cat /tmp/f')).toBe('kept')
      await environment.destroy()
    })

    test("a full disk is the sandbox's own", async () => {
      const environment = await created({ limits: { ...limits, diskMb: 64 } })
      expect(environment.confinement.join('\n')).toContain('disk: 64 MB')
      const { stderr } = await run(environment, 'dd if=/dev/zero of=/home/user/big bs=1M count=200')
      expect(stderr).toContain('No space left')
      expect(await output(environment, 'rm /home/user/big && echo alive')).toBe('alive')
      await environment.destroy()
    })
  })

test('check probes what is needed and leaves nothing behind', async () => {
  const data = newDirectory('data')
  const backend = backendIn(data)
  const checks = await backend.check()
  expect(checks.filter(check => check.required && !check.ok)).toEqual([])
  expect(checks.map(check => check.name)).toContain('seccomp')
  expect(readdirSync(data)).toEqual([])

  const broken = await backendIn(data, { nsjailPath: '/bin/false' }).check()
  expect(broken.find(check => check.name === 'nsjail')).toMatchObject({ ok: false, required: true })
  const missing = await backendIn(data, { nsjailPath: '/nowhere/nsjail' }).check()
  expect(missing.find(check => check.name === 'nsjail')).toMatchObject({ ok: false, remedy: expect.any(String) })
})
