import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const executable = resolve(process.argv[2] ?? 'dist/threadbox')
const apiKey = crypto.randomUUID()
const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }

/** Other work on the machine comes and goes: each round measures everything once, side by side with its baseline. */
const ROUNDS = 5

interface Line {
  name: string
  unit: 'ms' | 'MB'
  /** The samples of each round. */
  rounds: number[][]
  baseline?: Line
  goal?: { text: string; isMet: (line: Line) => boolean }
}

const lines: Line[] = []

function line(name: string, options: Partial<Line> = {}): Line {
  const made = { name, unit: 'ms' as const, rounds: [], ...options }
  lines.push(made)
  return made
}

const atMost = (limit: number, unit: string) => ({
  text: `p50 ≤ ${limit} ${unit}`,
  isMet: (measured: Line) => percentile(measured.rounds.flat(), 50) <= limit,
})

const bare = line('fork+exec: true')
const forkExec = line('fork+exec: bash -c true')
const execs = line('exec over HTTP: true, sandbox warm', {
  baseline: forkExec,
  goal: { text: '≤ 2 × fork+exec', isMet: measured => ratioOf(measured) <= 2 },
})
const firstExec = line('create a sandbox, then its first exec', { goal: atMost(25, 'ms') })
const create = line('  of which create')
const newStart = line('start to listening, new data directory')
const start = line('start to listening', { goal: atMost(40, 'ms') })
const firstAnswer = line('start to first answer')
const firstChunk = line('chat to first chunk, sandbox warm')
const timer = line('a timer of 50 ms: how late')
const pace = line('chunks 50 ms apart: how late', { baseline: timer })
const output = line('exec streamed: printed to read')
const idleRss = line('server idle, RSS', { unit: 'MB', goal: atMost(65, 'MB') })
const idlePss = line('server idle, PSS', { unit: 'MB' })
const busyRss = line('server with 1 sandbox, RSS', { unit: 'MB', goal: atMost(65, 'MB') })
const busyPss = line('server with 1 sandbox, PSS', { unit: 'MB' })
const guestRss = line('guest of the sandbox, RSS', { unit: 'MB' })
const guestPss = line('guest of the sandbox, PSS', { unit: 'MB' })

interface Server {
  url: string
  pid: number
  /** From the start of the process, in ms. */
  listeningAfter: number
  stop(): Promise<void>
}

async function serve(dataDirectory: string): Promise<Server> {
  const startedAt = performance.now()
  const child = Bun.spawn([executable, 'serve', '--data-dir', dataDirectory, '--port', '0'], {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', THREADBOX_API_KEY: apiKey },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  for await (const bytes of child.stdout) {
    printed += Buffer.from(bytes)
    if (printed.includes('\n')) break
  }
  const listeningAfter = performance.now() - startedAt
  const url = /^threadbox listening on (\S+)/.exec(printed)?.[1]
  if (!url) throw new Error(`no server: ${printed}`)
  const stop = async () => {
    child.kill('SIGTERM')
    await child.exited
  }
  return { url, pid: child.pid, listeningAfter, stop }
}

/** One request; what it answered, as text. */
async function call(url: string, method: string, path: string, body?: object): Promise<string> {
  const response = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text
}

/** How long each of `count` goes, one after the other. */
async function timed(count: number, work: () => Promise<unknown>): Promise<number[]> {
  const samples = []
  for (let index = 0; index < count; index++) {
    const startedAt = performance.now()
    await work()
    samples.push(performance.now() - startedAt)
  }
  return samples
}

const run = (...command: string[]) => Bun.spawn(command, { stdio: ['ignore', 'ignore', 'ignore'] }).exited

const createSandbox = async (url: string): Promise<{ id: string; sandboxId: string }> =>
  JSON.parse(await call(url, 'POST', '/v1/sandboxes', { agent: 'echo' }))

const exec = (url: string, id: string) => call(url, 'POST', `/v1/sandboxes/${id}/exec`, { command: 'true' })

async function measureExec(url: string, id: string): Promise<void> {
  await timed(50, () => exec(url, id))
  await timed(50, () => run('bash', '-c', 'true'))
  const [bares, bashes, overHttp]: [number[], number[], number[]] = [[], [], []]
  // In short turns: a burst of other work hits all alike.
  for (let turn = 0; turn < 20; turn++) {
    bares.push(...(await timed(10, () => run('true'))))
    bashes.push(...(await timed(10, () => run('bash', '-c', 'true'))))
    overHttp.push(...(await timed(10, () => exec(url, id))))
  }
  bare.rounds.push(bares)
  forkExec.rounds.push(bashes)
  execs.rounds.push(overHttp)
}

async function measureCreate(url: string): Promise<void> {
  const [creates, firsts]: [number[], number[]] = [[], []]
  for (let index = 0; index < 10; index++) {
    const startedAt = performance.now()
    const { id } = await createSandbox(url)
    creates.push(performance.now() - startedAt)
    await exec(url, id)
    firsts.push(performance.now() - startedAt)
    await call(url, 'DELETE', `/v1/sandboxes/${id}`)
  }
  create.rounds.push(creates)
  firstExec.rounds.push(firsts)
}

async function measureStart(dataDirectory: string): Promise<void> {
  const [listening, answered]: [number[], number[]] = [[], []]
  for (let index = 0; index < 8; index++) {
    const startedAt = performance.now()
    const server = await serve(dataDirectory)
    await (await fetch(`${server.url}/health`)).text()
    answered.push(performance.now() - startedAt)
    listening.push(server.listeningAfter)
    await server.stop()
  }
  start.rounds.push(listening)
  firstAnswer.rounds.push(answered)
}

/** What each server-sent event says, as soon as it is here. */
async function* eventsOf(response: Response): AsyncGenerator<{ type?: string }> {
  let rest = ''
  for await (const bytes of response.body ?? []) {
    rest += Buffer.from(bytes)
    const blocks = rest.split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const data = /^data: (\{.*)$/m.exec(block)?.[1]
      if (data) yield JSON.parse(data)
    }
  }
}

async function measureChat(url: string, sandboxId: string): Promise<void> {
  const say = (text: string) =>
    fetch(`${url}/v1/chat/echo`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ sandboxId, messages: [{ role: 'user', parts: [{ type: 'text', text }] }] }),
    })
  const firsts: number[] = []
  for (let index = 0; index < 20; index++) {
    const startedAt = performance.now()
    for await (const { type } of eventsOf(await say('hello'))) {
      if (type === 'start') firsts.push(performance.now() - startedAt)
    }
  }
  firstChunk.rounds.push(firsts)

  const gaps: number[] = []
  let last: number | undefined
  for await (const { type } of eventsOf(await say('/slow 41'))) {
    if (type !== 'text-delta') continue
    const now = performance.now()
    if (last !== undefined) gaps.push(now - last - 50)
    last = now
  }
  pace.rounds.push(gaps)
  timer.rounds.push((await timed(40, () => Bun.sleep(50))).map(each => each - 50))
}

async function measureOutput(url: string, sandboxId: string): Promise<void> {
  const command = 'for i in {1..50}; do echo $EPOCHREALTIME; read -t 0.01 <> <(:); done'
  const response = await fetch(`${url}/v1/sandboxes/${sandboxId}/exec`, {
    method: 'POST',
    headers: { ...headers, accept: 'text/event-stream' },
    body: JSON.stringify({ command }),
  })
  const delays: number[] = []
  for await (const event of eventsOf(response)) {
    const arrivedAt = performance.timeOrigin + performance.now()
    for (const printed of JSON.stringify(event).match(/\d{10}\.\d{6}/g) ?? []) {
      delays.push(arrivedAt - Number(printed) * 1000)
    }
  }
  output.rounds.push(delays)
}

function memoryOf(pid: number, name: 'Rss' | 'Pss'): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  return Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(rollup)?.[1]) / 1024
}

function guestOf(dataDirectory: string, environmentId: string): number {
  const jail = readFileSync(join(dataDirectory, 'sandboxes', environmentId, 'pid'), 'utf8').trim()
  return Number(readFileSync(`/proc/${jail}/task/${jail}/children`, 'utf8').split(' ')[0])
}

async function measureMemory(dataDirectory: string): Promise<void> {
  const { url, pid, stop } = await serve(dataDirectory)
  await call(url, 'GET', '/v1/sandboxes')
  await Bun.sleep(1500)
  idleRss.rounds.push([memoryOf(pid, 'Rss')])
  idlePss.rounds.push([memoryOf(pid, 'Pss')])
  const { id, sandboxId } = await createSandbox(url)
  await exec(url, id)
  await Bun.sleep(1500)
  busyRss.rounds.push([memoryOf(pid, 'Rss')])
  busyPss.rounds.push([memoryOf(pid, 'Pss')])
  const guest = guestOf(dataDirectory, sandboxId)
  guestRss.rounds.push([memoryOf(guest, 'Rss')])
  guestPss.rounds.push([memoryOf(guest, 'Pss')])
  await call(url, 'DELETE', `/v1/sandboxes/${id}`)
  await stop()
}

async function measureNewStart(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'threadbox-bench-'))
  const server = await serve(directory)
  newStart.rounds.push([server.listeningAfter])
  await server.stop()
  rmSync(directory, { recursive: true })
}

function percentile(samples: readonly number[], percent: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN
}

/** The median of the rounds' ratios: one noisy round does not decide. */
function ratioOf({ rounds, baseline }: Line): number {
  const ratios = rounds.map((round, index) => percentile(round, 50) / percentile(baseline?.rounds[index] ?? [], 50))
  return percentile(ratios, 50)
}

function report(): void {
  const head = ['', 'n', 'p50', 'p95', 'p99', 'ratio', 'goal', '']
  const rows = lines.map(each => {
    const samples = each.rounds.flat()
    const digits = each.unit === 'MB' ? 1 : 2
    const at = (percent: number) => `${percentile(samples, percent).toFixed(digits)} ${each.unit}`
    const ratio = each.baseline ? `${ratioOf(each).toFixed(2)} ×` : ''
    const verdict = each.goal ? (each.goal.isMet(each) ? 'met' : 'MISSED') : ''
    return [each.name, `${samples.length}`, at(50), at(95), at(99), ratio, each.goal?.text ?? '', verdict]
  })
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map(row => row[column]?.length ?? 0)))
  for (const row of [head, ...rows]) {
    const cells = row.map((cell, column) =>
      column === 0 || column > 5 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    )
    console.log(cells.join('  ').trimEnd())
  }
  console.log('\nratio: to the line of its baseline above it, the median of the rounds’ ratios of p50')
}

const directory = mkdtempSync(join(tmpdir(), 'threadbox-bench-'))
try {
  for (let round = 1; round <= ROUNDS; round++) {
    console.error(`round ${round} of ${ROUNDS}, load ${readFileSync('/proc/loadavg', 'utf8').split(' ')[0]}`)
    await measureNewStart()
    const { url, stop } = await serve(directory)
    const { id } = await createSandbox(url)
    await measureExec(url, id)
    await measureChat(url, id)
    await measureOutput(url, id)
    await call(url, 'DELETE', `/v1/sandboxes/${id}`)
    await measureCreate(url)
    await stop()
    await measureStart(directory)
    await measureMemory(directory)
  }
  report()
} finally {
  rmSync(directory, { recursive: true })
}
