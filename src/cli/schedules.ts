import { type Given, UsageError } from './command-line.ts'
import { printList } from './list.ts'
import { listAll } from './list-all.ts'
import { findServer, type ServerClient } from './server-client.ts'

interface Schedule {
  id: string
  name: string
  cron: string
  timeZone: string
  agent: string
  paused: boolean
  nextAt: string | null
}

interface Run {
  id: string
  status: string
  dueAt: string
  sandboxId: string | null
  runId: string | null
  exitCode: number | null
  error: string | null
}

/** Makes, lists, runs, pauses and removes the schedules of a running server. */
export async function schedules(given: Given): Promise<void> {
  const server = findServer(given)
  const [id = ''] = given.words
  switch (given.action) {
    case 'list':
      return printList(given, await listAll<Schedule>(server, '/v1/schedules', 'schedules'), {
        id: each => each.id,
        agent: each => each.agent,
        cron: each => each.cron,
        zone: each => each.timeZone,
        next: each => (each.paused ? 'paused' : (each.nextAt ?? 'never')),
        name: each => each.name,
      })
    case 'show':
      return printList(given, await listAll<Run>(server, `${toPath(id)}/runs`, 'runs'), {
        id: each => each.id,
        status: each => each.status,
        due: each => each.dueAt,
        exit: each => `${each.exitCode ?? ''}`,
        sandbox: each => each.sandboxId ?? '',
        run: each => each.runId ?? '',
        error: each => each.error ?? '',
      })
    case 'create':
      return await create(given, server)
    case 'run':
      await server.request('POST', `${toPath(id)}/run`)
      return say(given, `${id} runs now.`)
  }
  for (const each of new Set(given.words)) {
    const path = toPath(each)
    if (given.action === 'remove') await server.request('DELETE', path)
    else await server.request('PATCH', path, { paused: given.action === 'pause' })
    say(given, `${each} is ${given.action === 'remove' ? 'removed' : given.action === 'pause' ? 'paused' : 'resumed'}.`)
  }
}

async function create(given: Given, server: ServerClient): Promise<void> {
  const cron = given.find('cron')
  const [prompt, command] = [given.find('prompt'), given.find('command')]
  if (cron === undefined) throw new UsageError("--cron: say when, as --cron '30 9 * * MON-FRI'")
  if ((prompt === undefined) === (command === undefined)) throw new UsageError('give either --prompt or --command')
  const timeoutMs = given.find('timeout-ms')
  const wanted = {
    agent: given.words[0],
    cron,
    ...{ prompt, command, timeZone: given.find('time-zone'), sandbox: given.find('sandbox'), name: given.find('name') },
    ...(timeoutMs !== undefined && { timeoutMs: Number(timeoutMs) }),
    ...(given.has('keep') && { keep: true }),
  }
  const made = (await (await server.request('POST', '/v1/schedules', wanted)).json()) as Schedule
  console.log(given.has('quiet') ? made.id : `${made.id} runs next at ${made.nextAt ?? 'no time'}.`)
}

const say = (given: Given, text: string) => {
  if (!given.has('quiet')) console.log(text)
}

function toPath(id: string): string {
  if (id === '' || id === '.' || id === '..') throw new UsageError('SCHEDULE must be an id')
  return `/v1/schedules/${encodeURIComponent(id)}`
}
