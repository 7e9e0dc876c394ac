import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { call, inDirectory, serve } from '../benchmarks/server.ts'
import { converse, type Sample } from './conversation.ts'
import { beginnings } from './day.ts'
import { cpuSeconds, type Look, look } from './watch.ts'

export interface Plan {
  conversations: number
  /** The messages of each conversation. */
  messages: number
  /** The duration of the day. */
  dayMs: number
}

/** The day's results. */
export interface Day {
  samples: Sample[]
  looks: Look[]
  /** The CPU time of all processes besides the server, in seconds. */
  others: { cloud: number; simulator: number }
}

/** A user thinks for about three minutes of the day. */
const THINK_PART = 3 / (24 * 60)
/** A server that is further behind gets no more messages. */
const LATE = 1.1
const LOOKS = 100
const UNLIMITED = ['key', 'address'].flatMap(whose => ['requests', 'runs', 'streams'].map(each => `${whose}.${each}`))

/** Starts a server and the cloud of its sandboxes, and plays the day. Nothing is left of it afterwards. */
export async function runDay(plan: Plan): Promise<Day> {
  const cloud = Bun.spawn([process.execPath, join(import.meta.dir, 'cloud.ts')], { stdio: ['pipe', 'pipe', 'inherit'] })
  const { value } = await cloud.stdout.getReader().read()
  const url = new TextDecoder().decode(value).trim()
  const env = { E2B_API_KEY: 'e2b_0123456789abcdef', E2B_API_URL: url, E2B_SANDBOX_URL: url }
  const limits = [...UNLIMITED, 'team.sandboxes'].flatMap(name => ['--limit', `${name}=0`])
  const day: Day = { samples: [], looks: [], others: { cloud: 0, simulator: 0 } }
  try {
    await inDirectory(async directory => {
      const server = await serve(directory, ['--backend', 'e2b', '--requests-per-key', '0', ...limits], env)
      try {
        await call(server.url, 'GET', '/v1/sandboxes')
        await pass(plan, server.url, day, () => look(server.pid, directory))
      } catch (error) {
        console.error(readFileSync(join(directory, 'bench.log'), 'utf8'))
        throw error
      } finally {
        await server.stop()
      }
    })
    day.others = { cloud: cpuSeconds(cloud.pid), simulator: cpuSeconds(process.pid) }
    return day
  } finally {
    cloud.stdin.end()
    await cloud.exited
  }
}

async function pass({ conversations, messages, dayMs }: Plan, url: string, day: Day, take: () => Look): Promise<void> {
  let problem: unknown
  const watch = () => {
    try {
      day.looks.push(take())
    } catch (error) {
      problem = error
    }
  }
  watch()
  const watching = setInterval(watch, dayMs / LOOKS)
  try {
    const startedAt = performance.now()
    const isOver = () => problem !== undefined || performance.now() - startedAt > dayMs * LATE
    const thinkMs = () => -Math.log(1 - Math.random()) * THINK_PART * dayMs
    const ends: Promise<void>[] = []
    for (const at of beginnings(conversations)) {
      const waitMs = startedAt + at * dayMs - performance.now()
      if (waitMs > 1) await Bun.sleep(waitMs)
      if (isOver()) break
      ends.push(converse(url, messages, thinkMs, isOver, sample => day.samples.push(sample)))
    }
    await Promise.all(ends)
  } finally {
    clearInterval(watching)
  }
  watch()
  if (problem) throw problem
}
