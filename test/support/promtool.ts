import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const cached = join(import.meta.dir, '../../.cache/promtool')

/** Prometheus' own checker, from its Debian package, without the server and what it depends on. Fetched once, then cached. */
export async function promtool(): Promise<string> {
  const installed = Bun.which('promtool') ?? (existsSync(cached) ? cached : undefined)
  if (installed) return installed
  const scratch = mkdtempSync(join(tmpdir(), 'threadbox-promtool-'))
  try {
    const fetch = 'apt-get -qq download prometheus || { apt-get -qq update && apt-get -qq download prometheus; }'
    await run(scratch, `${fetch} && dpkg -x prometheus_*.deb .`)
    // Other tests may fetch it at the same time.
    const own = `${cached}.${process.pid}`
    await run(scratch, `cp usr/bin/promtool ${own}`)
    renameSync(own, cached)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
  return cached
}

async function run(cwd: string, command: string): Promise<void> {
  const child = Bun.spawn(['sh', '-c', command], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  const problems = await child.stderr.text()
  if ((await child.exited) !== 0) throw new Error(`${command}: ${problems}`)
}
