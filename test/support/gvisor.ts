import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './dockerd.ts'

const root = join(import.meta.dir, '../..')
const built = join(root, '.cache/gvisor/runsc')

/**
 * gVisor's runtime: RUNSC, else what scripts/gvisor brings, by Go or from Debian. Says which. `isOld`: it is of a time when gVisor had no
 * limit that could mark processes, as the one of Debian 12.
 */
export async function findRunsc(): Promise<{ path: string; isOld: boolean }> {
  const here = () => (existsSync(built) ? built : Bun.which('runsc'))
  if (!process.env.RUNSC && !here()) await run(join(root, 'scripts/gvisor'))
  const path = process.env.RUNSC ?? here()
  if (!path) throw new Error('scripts/gvisor has brought no runsc')
  const version = await Bun.spawn([path, '--version'], { stdout: 'pipe' }).stdout.text()
  console.log(`${path}: ${version}`.trim())
  const [, year] = /\b(?:release-|0\.0~)(\d{4})\d{4}/.exec(version) ?? []
  return { path, isOld: year !== undefined && Number(year) < 2024 }
}

/** The part of daemon.json with a runtime `runsc` and the arguments that threadbox needs. */
export const gvisorRuntime = (runsc: string, more: readonly string[] = []) => ({
  runtimes: {
    runsc: { path: runsc, runtimeArgs: [...runtimeArgs, ...more] },
    /** The runtime in whose network nothing is redirected. */
    'runsc-apart': { path: runsc, runtimeArgs: runtimeArgs.filter(each => each !== '--net-raw') },
    plain: { path: 'runc' },
  },
})

export const runtimeArgs = ['--platform=systrap', '--oci-seccomp', '--overlay2=none', '--net-raw']
