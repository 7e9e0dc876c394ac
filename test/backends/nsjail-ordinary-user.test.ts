import { expect, test } from 'bun:test'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const USER = 54_321

/** Run by an ordinary user these tests are run themselves: there is nobody to become. */
test.if(process.getuid?.() === 0)(
  'the whole contract and all probes hold for a server that is no root, and connections to any address reach it',
  () => {
    const home = mkdtempSync(join(tmpdir(), 'threadbox-user-'))
    try {
      chownSync(home, USER, USER)
      const { exitCode, stderr } = Bun.spawnSync(
        [
          ...['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups', '--'],
          ...[process.execPath, 'test', '--timeout', '60000'],
          ...['contract', 'direct', 'names', 'probes'].map(name => join(import.meta.dir, `nsjail-${name}.test.ts`)),
        ],
        { env: { PATH: process.env.PATH ?? '', HOME: home, TMPDIR: home }, stderr: 'pipe' },
      )
      if (exitCode !== 0) console.error(stderr.toString())
      expect(exitCode).toBe(0)
      expect(stderr.toString()).toContain('backend nsjail as an ordinary user')
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  },
  240_000,
)
