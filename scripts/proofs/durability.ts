// What `--durability full` costs: bun scripts/proofs/durability.ts [DIRECTORY] (on the disk that is meant; builds first: scripts/build)
// Two servers take turns. How late a chunk comes after it was made, how long replies take, and what the server works for them.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../../test/support/server.ts'
import { eventsOf } from '../../test/support/sse.ts'

const ROUNDS = 5
const WORDS = 2000
const AT_ONCE = 16

const directory = mkdtempSync(join(process.argv[2] ?? tmpdir(), 'threadbox-durability-'))
const open = async (durability: string) => {
  const flags = ['--durability', durability, '--spares', '0']
  const server = await startServer({ dataDirectory: join(directory, durability), flags })
  return {
    server,
    durability,
    sandboxId: await server.sandbox(),
    late: [] as number[],
    one: [] as number[],
    many: [] as number[],
    cpu: [] as number[],
  }
}
type Subject = Awaited<ReturnType<typeof open>>

/** Measures how late each word of a slow reply came, in milliseconds after it was made. */
async function lateness({ server, sandboxId }: Subject): Promise<number[]> {
  const response = await server.chat('/slow 40', { sandboxId })
  const came = new Map<string, number>()
  for await (const { id } of eventsOf(response)) came.set(id ?? '', Date.now())
  const runId = response.headers.get('x-run-id')
  const { body } = await server.ask('GET', `/v1/runs/${runId}/events`)
  const events: { seq: number; at: string; chunk: { type: string } }[] = body.events
  return events
    .filter(({ chunk }) => chunk.type === 'text-delta')
    .map(({ seq, at }) => (came.get(`${runId}/${seq}`) ?? Number.NaN) - Date.parse(at))
}

async function replies({ server, sandboxId }: Subject, count: number): Promise<number> {
  const text = 'word '.repeat(WORDS)
  const from = performance.now()
  await Promise.all(Array.from({ length: count }, async () => (await server.chat(text, { sandboxId })).text()))
  return performance.now() - from
}

/** Returns the server's user and system time, in milliseconds. */
function cpuMs({ server }: Subject): number {
  const fields = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

const sorted = (values: readonly number[]) => [...values].sort((a, b) => a - b)
const at = (values: readonly number[], share: number) =>
  sorted(values)[Math.floor((values.length - 1) * share)] ?? Number.NaN

const subjects = [await open('normal'), await open('full')]
for (let round = 0; round < ROUNDS; round++)
  for (const subject of subjects) {
    subject.late.push(...(await lateness(subject)))
    const before = cpuMs(subject)
    subject.one.push(await replies(subject, 1))
    subject.many.push(await replies(subject, AT_ONCE))
    subject.cpu.push(cpuMs(subject) - before)
  }
for (const { durability, late, one, many, cpu } of subjects)
  console.log(
    `${durability}: a chunk comes after ${at(late, 0.5)} ms (p99 ${at(late, 0.99)}); ${WORDS} words ${Math.round(at(one, 0.5))} ms; ` +
      `${AT_ONCE} such replies at once ${Math.round(at(many, 0.5))} ms; ${Math.round(at(cpu, 0.5))} ms of CPU`,
  )
for (const { server } of subjects) await server.close()
rmSync(directory, { recursive: true, force: true })
