/**
 * Makes, uses and deletes many sandboxes and tells what is left of them. Exit 1 when anything is.
 * usage: bun scripts/churn.ts EXECUTABLE COUNT [FLAG...]   flags of serve: --backend docker --docker-image debian
 */
import { readdirSync, readFileSync } from 'node:fs'
import { call, inDirectory, serve } from './benchmarks/server.ts'

const [, , , count = '200', ...flags] = process.argv
const AT_ONCE = 4
const SETTLES_MS = 5000

interface Traces {
  processes: number
  descriptors: number
  mounts: number
  cgroups: number
  containers: number
  volumes: number
}

const linesOf = (path: string) => readFileSync(path, 'utf8').trim().split('\n')

function docker(...args: string[]): number {
  if (!flags.includes('docker')) return 0
  return Bun.spawnSync(['docker', ...args])
    .stdout.toString()
    .trim()
    .split('\n')
    .filter(Boolean).length
}

const tracesOf = (server: number): Traces => ({
  processes: readdirSync('/proc').filter(Number).length,
  descriptors: readdirSync(`/proc/${server}/fd`).length,
  mounts: linesOf('/proc/self/mountinfo').length,
  cgroups: linesOf('/proc/cgroups').reduce((all, line) => all + (Number(line.split('\t')[2]) || 0), 0),
  containers: docker('ps', '--all', '--quiet'),
  volumes: docker('volume', 'ls', '--quiet'),
})

await inDirectory(async directory => {
  const { DOCKER_HOST } = process.env
  const { url, pid, stop } = await serve(directory, flags, DOCKER_HOST ? { DOCKER_HOST } : {})
  const one = async () => {
    const { id } = JSON.parse(await call(url, 'POST', '/v1/sandboxes', { agent: 'echo' }))
    await call(url, 'POST', `/v1/sandboxes/${id}/exec`, { command: '(sleep 1000 &); echo x >/tmp/x' })
    await call(url, 'DELETE', `/v1/sandboxes/${id}`)
  }
  // The first ones bring what stays, as connections that are kept.
  await Promise.all(Array.from({ length: AT_ONCE }, one))
  await Bun.sleep(SETTLES_MS)
  const before = tracesOf(pid)
  const startedAt = performance.now()
  let left = Number(count)
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (left-- > 0) await one()
    }),
  )
  const seconds = (performance.now() - startedAt) / 1000
  await Bun.sleep(SETTLES_MS)
  const after = tracesOf(pid)
  await stop()
  console.log(`${count} sandboxes made, used and deleted in ${seconds.toFixed(1)} s`)
  for (const name of Object.keys(before) as (keyof Traces)[]) {
    const grown = after[name] > before[name]
    // Other work on the machine comes and goes.
    console.log(`${name.padEnd(12)} ${before[name]} before, ${after[name]} after${grown ? '  LEFT' : ''}`)
    if (grown) process.exitCode = 1
  }
})
