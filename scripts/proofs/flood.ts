/**
 * `bun scripts/proofs/flood.ts [REQUESTS]`: floods a server (dist/threadbox, its default limits) with 20,000 requests of one key while another key
 * works: its p99 stays within 2 × of what it is alone, which is measured in between. Then 300 wrong keys from one address, through a trusted proxy: they are slowed, others not.
 */
import { startServer } from '../../test/support/server.ts'

const FLOOD = Number(process.argv[2] ?? 20_000)
const CONNECTIONS = 64
const [, , , floodedUrl, floodingKey] = process.argv
if (floodedUrl !== undefined) {
  await flood(floodedUrl, floodingKey ?? '')
  process.exit()
}
const ROUNDS = 4
const WINDOW = 200

/** Runs the flood in its own process. */
async function flood(url: string, key: string): Promise<void> {
  const counts: Record<number, number> = {}
  let sent = 0
  const send = async () => {
    while (sent++ < FLOOD) {
      const response = await fetch(`${url}/v1/sandboxes`, { headers: { authorization: `Bearer ${key}` } })
      await response.text()
      counts[response.status] = (counts[response.status] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, send))
  console.log(JSON.stringify(counts))
}

await using server = await startServer({ flags: ['--trusted-proxies', '127.0.0.1', '--spares', '0'] })
const createKey = (dataDirectory: string) =>
  Bun.spawnSync(['dist/threadbox', 'keys', 'create', '--quiet', '--data-dir', dataDirectory]).stdout.toString().trim()
const flooding = createKey(server.dataDirectory)
const id = await server.sandbox()

/** Measures the milliseconds of one command of the other key. */
async function work(): Promise<number> {
  const from = performance.now()
  const { exitCode } = await server.exec(id, 'true')
  if (exitCode !== 0) throw new Error('the command failed')
  return performance.now() - from
}

async function measure(): Promise<number[]> {
  const times: number[] = []
  while (times.length < WINDOW) times.push(await work())
  return times
}

const at = (times: readonly number[], part: number) => times[Math.floor(times.length * part)] ?? 0
const show = (name: string, times: readonly number[]) =>
  console.log(
    `${name}: ${times.length} commands, p50 ${at(times, 0.5).toFixed(2)} ms, p99 ${at(times, 0.99).toFixed(2)} ms`,
  )

/** Floods a server while the other key works at the first one. */
async function measureBeside(url: string, key: string): Promise<{ times: number[]; answers: string }> {
  const args = [process.execPath, import.meta.path, String(FLOOD / ROUNDS), url, key]
  const flooder = Bun.spawn(args, { stdout: 'pipe' })
  const times: number[] = []
  while (flooder.exitCode === null) times.push(await work())
  return { times, answers: (await flooder.stdout.text()).trim() }
}

await using second = await startServer({ flags: ['--spares', '0'] })
const secondKey = createKey(second.dataDirectory)
const measured = { alone: [] as number[], beside: [] as number[], elsewhere: [] as number[] }
await measure()
for (let round = 0; round < ROUNDS; round++) {
  measured.alone.push(...(await measure()))
  const beside = await measureBeside(server.url, flooding)
  measured.beside.push(...beside.times)
  // The same flood goes to another server: this shows its cost for the machine, without the cost for the server.
  measured.elsewhere.push(...(await measureBeside(second.url, secondKey)).times)
  console.log(`answers of the flood: ${beside.answers}`)
}
for (const [name, times] of Object.entries(measured)) {
  times.sort((a, b) => a - b)
  show(name, times)
}
const ratio = at(measured.beside, 0.99) / at(measured.alone, 0.99)
const elsewhere = at(measured.elsewhere, 0.99) / at(measured.alone, 0.99)
console.log(`p99 beside the flood: ${ratio.toFixed(2)} ×; beside a flood of another server: ${elsewhere.toFixed(2)} ×`)

const wrong = async (index: number) => {
  const begun = performance.now()
  const headers = { 'x-forwarded-for': '198.51.100.7' }
  const { status } = await server.request('GET', '/v1/sandboxes', { key: `tbx_wrong-${index}`, headers })
  return { status, ms: performance.now() - begun }
}
const tries = await Promise.all(Array.from({ length: 300 }, (_, index) => wrong(index)))
const looked = tries.filter(({ status }) => status === 401)
const refused = tries.filter(({ status }) => status === 429)
const slowest = Math.max(...looked.map(({ ms }) => ms))
console.log(
  `300 wrong keys: ${looked.length} looked at, the last after ${slowest.toFixed(0)} ms, ${refused.length} refused`,
)
const other = await server.request('GET', '/v1/sandboxes', { headers: { 'x-forwarded-for': '198.51.100.8' } })
show(
  'others meanwhile',
  (await measure()).sort((a, b) => a - b),
)
const isGood = ratio <= 2 && looked.length < 30 && looked.length + refused.length === 300 && other.status === 200
console.log(isGood ? 'good' : 'NOT GOOD')
process.exitCode = isGood ? 0 : 1
