/**
 * Makes, uses and deletes many sandboxes and tells what is left of them. Exit 1 when anything is.
 * usage: bun scripts/churn.ts EXECUTABLE COUNT [FLAG...]   flags of serve: --backend docker --docker-image debian
 */
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { call, inDirectory, serve } from './benchmarks/server.ts'

const [, , , count = '200', ...flags] = process.argv
const AT_ONCE = 4
/** Every so often, this many are made at once, whether there are spares or not. */
const BURST = 25
const SETTLES_MS = 5000

interface Traces {
  processes: number
  descriptors: number
  mounts: number
  cgroups: number
  containers: number
  volumes: number
  /** The server's own memory. */
  memoryMb: number
}

const ofMachine: readonly (keyof Traces)[] = ['processes', 'mounts', 'cgroups', 'memoryMb']

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
  memoryMb: Math.round(Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${server}/status`, 'utf8'))?.[1]) / 1024),
})

const namesIn = (path: string) => (existsSync(path) ? readdirSync(path) : [])

/** Lists what a stopped server has left of its sandboxes and spares, whatever else runs on the machine. */
function ownTraces(directory: string, ids: ReadonlySet<string>): string[] {
  const pattern = new RegExp([directory, ...ids].join('|'))
  const read = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : '')
  const processes = readdirSync('/proc')
    .filter(pid => Number(pid) && Number(pid) !== process.pid)
    .map(pid => `process ${pid} ${read(`/proc/${pid}/cmdline`)} ${read(`/proc/${pid}/cgroup`)}`)
  const traces = [
    ...processes,
    ...linesOf('/proc/self/mountinfo').map(line => `mount ${line}`),
    ...globSync('/sys/block/loop*/loop/backing_file').map(path => `loop device ${read(path)}`),
    ...globSync('/sys/fs/cgroup/{,*/}threadbox/*').map(path => `cgroup ${path}`),
    ...globSync('/run/threadbox/*').map(path => `directory ${path}`),
    ...['sandboxes', 'trash', 'spare'].flatMap(name =>
      namesIn(join(directory, name)).map(each => join(directory, name, each)),
    ),
  ]
  return traces.filter(trace => pattern.test(trace))
}

await inDirectory(async directory => {
  const { DOCKER_HOST } = process.env
  const { url, pid, stop } = await serve(directory, flags, DOCKER_HOST ? { DOCKER_HOST } : {})
  const ids = new Set<string>()
  const one = async () => {
    const { id, sandboxId } = JSON.parse(await call(url, 'POST', '/v1/sandboxes', { agent: 'echo' }))
    ids.add(sandboxId)
    await call(url, 'POST', `/v1/sandboxes/${id}/exec`, { command: '(sleep 1000 &); echo x >/tmp/x' })
    await call(url, 'DELETE', `/v1/sandboxes/${id}`)
  }
  // The first ones bring what stays, as connections that are kept.
  await Promise.all(Array.from({ length: BURST }, one))
  await Bun.sleep(SETTLES_MS)
  const before = tracesOf(pid)
  const startedAt = performance.now()
  let left = Number(count)
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (left-- > 0) {
        await one()
        if (left % (2 * BURST) !== 0) continue
        left -= BURST
        await Promise.all(Array.from({ length: BURST }, one))
      }
    }),
  )
  const seconds = (performance.now() - startedAt) / 1000
  await Bun.sleep(SETTLES_MS)
  const after = tracesOf(pid)
  for (const name of namesIn(join(directory, 'sandboxes'))) ids.add(name)
  await stop()
  const kept = ownTraces(directory, ids)
  for (const trace of kept) console.log(`LEFT  ${trace}`)
  if (kept.length > 0) process.exitCode = 1
  console.log(`${count} sandboxes made, used and deleted in ${seconds.toFixed(1)} s`)
  for (const name of Object.keys(before) as (keyof Traces)[]) {
    // A spare that is being made, or a connection of this client, has some descriptors.
    const grown = after[name] > before[name] + (name === 'descriptors' ? AT_ONCE * 4 : 0)
    console.log(`${name.padEnd(12)} ${before[name]} before, ${after[name]} after${grown ? '  LEFT' : ''}`)
    // Other work on the machine may come and go.
    if (grown && !ofMachine.includes(name)) process.exitCode = 1
  }
})
