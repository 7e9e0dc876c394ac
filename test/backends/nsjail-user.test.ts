import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createNsjailBackend } from '../../plugins/nsjail/index.ts'
import type { Backend, Environment } from '../../src/plugin-api/index.ts'
import { until } from '../../src/plugin-suite/until.ts'
import { leftovers } from '../support/leftovers.ts'

setDefaultTimeout(60_000)

const repository = join(import.meta.dir, '../..')
const cached = join(repository, '.cache/nsjail/nsjail/bin/nsjail')
const nsjailPath = existsSync(cached) ? cached : (Bun.which('nsjail') ?? cached)
const limits = { memoryMb: 512, processes: 64, cpus: 1, diskMb: 20 }
const USER = 4321

const scratch = mkdtempSync(join(tmpdir(), 'nsjail-user-'))
afterAll(() => {
  Bun.spawnSync(['chmod', '-R', 'u+rwX', scratch])
  rmSync(scratch, { recursive: true, force: true })
})

if (process.getuid?.() === 0) {
  test('as an ordinary user', async () => {
    // The repository and bun may be where other users cannot go.
    const copies = [
      'src',
      'plugins/nsjail',
      'test/backends',
      'test/support/leftovers.ts',
      'tsconfig.json',
      '.cache/nsjail',
    ]
    for (const path of copies.filter(path => existsSync(join(repository, path)))) {
      cpSync(join(repository, path), join(scratch, path), { recursive: true, verbatimSymlinks: true })
    }
    const bun = join(scratch, 'bun')
    cpSync(process.execPath, bun)
    Bun.spawnSync(['chown', '-R', `${USER}:${USER}`, scratch])
    const command = ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups', '--', bun, 'test']
    const child = Bun.spawn([...command, './test/backends/nsjail-user.test.ts'], {
      cwd: scratch,
      env: { PATH: `${dirname(nsjailPath)}:/usr/local/bin:/usr/bin:/bin`, NO_COLOR: '1' },
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [, words] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    if ((await child.exited) !== 0) throw new Error(words)
    expect(words).toMatch(/ 0 fail/)
  })
} else {
  describe('nsjail as an ordinary user', () => {
    const data = join(scratch, 'data')
    const executable = join(scratch, 'guest')
    let backend: Backend

    beforeAll(async () => {
      const entry = join(scratch, 'guest.ts')
      writeFileSync(entry, `import { serveGuest } from '${repository}/src/guest/inside/serve.ts'\nserveGuest(3)\n`)
      const command = [process.execPath, 'build', '--compile', entry, '--outfile', executable]
      expect(await Bun.spawn(command, { stdio: ['ignore', 'ignore', 'inherit'] }).exited).toBe(0)
      backend = open()
    })

    afterAll(() => backend.close())

    const open = () => createNsjailBackend({ dataDirectory: data, nsjailPath, executable, log() {} })
    const newId = () => `env_${Bun.randomUUIDv7()}`

    const output = async (environment: Environment, command: string) => {
      const child = await environment.spawn({ command })
      const [text] = await Promise.all([new Response(child.stdout).text(), child.exited])
      return text.trim()
    }

    test('check says what is missing, and nothing required is', async () => {
      const checks = await backend.check()
      expect(checks.filter(check => check.required && !check.ok)).toEqual([])
      expect(checks.find(check => check.name === 'isolation')?.detail).toContain('ordinary user')
      expect(checks.find(check => check.name === 'cgroups')?.ok).toBe(false)
    })

    test('runs, keeps files, installs into /usr/local, and goes without a trace', async () => {
      const environment = await backend.create({ id: newId(), limits })
      expect(await output(environment, 'id -u; id -un')).toBe('0\nroot')
      expect(await output(environment, 'grep -E "^(NoNewPrivs|Seccomp):" /proc/self/status | cut -f2')).toBe('1\n2')
      expect(await output(environment, 'touch /usr/local/bin/x /usr/local/lib/node_modules/x && echo ok')).toBe('ok')
      expect(await output(environment, 'unshare -U true && echo nested; cat /etc/hostname; ls -d /home/*')).toBe(
        'sandbox\n/home/user',
      )
      expect(environment.confinement.join('\n')).toContain('memory: not limited')
      await output(
        environment,
        'mkdir -p /home/user/a/b; echo kept >/home/user/a/b/file; rm -rf /etc/skel; chmod 0 /home/user/a',
      )
      await environment.pause?.()
      expect(await output(environment, 'cat /home/user/a/b/file; ls -d /etc/skel 2>&1')).toMatch(
        /^kept\n.*No such file/,
      )
      await environment.destroy()
      expect(await leftovers(environment.id)).toEqual([])
      expect(readdirSync(join(data, 'sandboxes'))).toEqual([])
      await until(() => readdirSync(join(data, 'trash')).length === 0)
    })

    test('outlives its backend', async () => {
      const { id } = await backend.create({ id: newId(), limits })
      // Until the program is there, the process is a copy of the shell.
      const start = 'sleep 1000 >/dev/null 2>&1 & until grep -q sleep /proc/$!/comm; do :; done; echo $!'
      const pid = await output((await backend.open(id))!, start)
      await backend.close()
      backend = open()
      const environment = await backend.open(id)
      expect(await output(environment!, `cat /proc/${pid}/comm`)).toBe('sleep')
      await environment!.destroy()
    })

    test('a fork bomb stops at the process limit', async () => {
      const environment = await backend.create({ id: newId(), limits })
      const abort = new AbortController()
      const child = await environment.spawn({ command: 'bomb() { bomb | bomb & bomb; }; bomb', signal: abort.signal })
      await Bun.sleep(300)
      abort.abort()
      await child.exited.catch(() => {})
      expect(await output(environment, 'echo alive')).toBe('alive')
      await environment.destroy()
    })

    test('who writes past the disk limit is stopped, with a reason', async () => {
      const environment = await backend.create({ id: newId(), limits })
      const write =
        'dd if=/dev/zero of=/home/user/big bs=1M count=30; cp /home/user/big /home/user/more; ls -s /home/user/big'
      expect(Number.parseInt(await output(environment, write), 10)).toBe(20 * 1024)
      const deadline = performance.now() + 15_000
      while (!environment.confinement.some(line => line.includes('its files took'))) {
        if (performance.now() > deadline) throw new Error('it was not stopped')
        await Bun.sleep(100)
      }
      expect(await output(environment, 'rm /home/user/big /home/user/more && echo alive')).toBe('alive')
      await environment.destroy()
    }, 60_000)

    test('a base has to be his own; a link on a mount target refuses the start', async () => {
      await expect(backend.create({ id: newId(), base: '/usr', limits })).rejects.toMatchObject({
        code: 'invalid_request',
      })
      const environment = await backend.create({ id: newId(), limits })
      await environment.pause?.()
      const outside = join(scratch, 'outside')
      mkdirSync(outside)
      symlinkSync(outside, join(data, 'sandboxes', environment.id, 'box/upper/proc'))
      await expect(output(environment, 'true')).rejects.toMatchObject({ code: 'sandbox_unavailable' })
      expect(readdirSync(outside)).toEqual([])
      await environment.destroy()
    })

    test('says plainly when a path cannot be a layer', async () => {
      const unfit = createNsjailBackend({ dataDirectory: join(scratch, 'a:b'), nsjailPath, executable, log() {} })
      await expect(unfit.create({ id: newId(), limits })).rejects.toThrow(/colon/)
      expect((await unfit.check()).some(check => check.required && !check.ok)).toBe(true)
      await unfit.close()
    })

    test('a data directory that others may not enter is enough', () => {
      chmodSync(scratch, 0o700)
    })
  })
}
