import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './dockerd.ts'

const directory = join(import.meta.dir, '../../.cache/gvisor')

/** gVisor's runtime: RUNSC, else one of PATH, else one that Go builds once, which takes minutes. Says which it is. */
export async function findRunsc(): Promise<string> {
  const built = join(directory, 'runsc')
  const found = process.env.RUNSC ?? (existsSync(built) ? built : (Bun.which('runsc') ?? (await buildRunsc(built))))
  console.log(`${found}: ${await Bun.spawn([found, '--version'], { stdout: 'pipe' }).stdout.text()}`.trim())
  return found
}

async function buildRunsc(path: string): Promise<string> {
  if (!Bun.which('go'))
    throw new Error("there is no runsc: apt-get install runsc, or install Go, or set RUNSC to one's path")
  mkdirSync(directory, { recursive: true })
  // One that is linked to a libc cannot start its sandbox.
  const settings = { CGO_ENABLED: '0', GOFLAGS: '-mod=mod', GOBIN: directory }
  await run(
    'env',
    ...Object.entries(settings).map(each => each.join('=')),
    'go',
    'install',
    'gvisor.dev/gvisor/runsc@latest',
  )
  return path
}

/** For daemon.json: a runtime `runsc`, with what threadbox needs of it. */
export const gvisorRuntime = (runsc: string, more: readonly string[] = []) => ({
  runtimes: { runsc: { path: runsc, runtimeArgs: [...runtimeArgs, ...more] } },
})

export const runtimeArgs = ['--platform=systrap', '--oci-seccomp', '--overlay2=none']
