import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { call, eventsOf, headers, inDirectory, memoryOf, say, serve } from './server.ts'
import { atMost, type Line, line as plainLine, ratioOf, report } from './table.ts'

/** Other work on the machine comes and goes: each round measures everything once, side by side with its baseline. */
const ROUNDS = 5

const lines: Line[] = []

function line(name: string, options: Partial<Line> = {}): Line {
  const made = plainLine(name, options)
  lines.push(made)
  return made
}

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

async function measureChat(url: string, sandboxId: string): Promise<void> {
  const firsts: number[] = []
  for (let index = 0; index < 20; index++) {
    const startedAt = performance.now()
    for await (const { type } of eventsOf(await say(url, 'echo', 'hello', { sandboxId }))) {
      if (type === 'start') firsts.push(performance.now() - startedAt)
    }
  }
  firstChunk.rounds.push(firsts)

  const gaps: number[] = []
  let last: number | undefined
  for await (const { type } of eventsOf(await say(url, 'echo', '/slow 41', { sandboxId }))) {
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

function guestOf(dataDirectory: string, environmentId: string): number {
  // The process id, and a mark of the data directory.
  const [jail] = readFileSync(join(dataDirectory, 'sandboxes', environmentId, 'pid'), 'utf8').split(/\s/)
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

const measureNewStart = () =>
  inDirectory(async directory => {
    const server = await serve(directory)
    newStart.rounds.push([server.listeningAfter])
    await server.stop()
  })

await inDirectory(async directory => {
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
  report(lines)
})
