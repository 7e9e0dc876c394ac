import { setTimeout as wait } from 'node:timers/promises'
import { messageOf } from '../errors.ts'
import type { Expect, Kit, Test } from './kit.ts'

export interface Totals {
  passed: number
  failed: number
  skipped: number
}

export interface Runner {
  /** Defines suites; to be used before `run`. */
  kit: Kit
  /** Runs the tests one after the other and reports each as it ends. The totals count the tests that `stop` kept from running. */
  run(): Promise<Totals>
  /** Lets no further test begin; hooks still clean up. */
  stop(): void
}

type Run = () => void | Promise<void>

interface Step {
  title: string
  run: Run
  timeoutMs: number
}

interface Group {
  title: string
  before: Step[]
  after: Step[]
  entries: (Step | Group | { skipped: string })[]
}

/** Backends on other machines need long. */
const TIMEOUT_MS = 60_000

/** Makes a test runner, since the executable does not contain bun:test. `say` gets the lines of the report. */
export function createRunner(expect: Expect, say: (line: string) => void): Runner {
  let current: Group = { title: '', before: [], after: [], entries: [] }
  const totals: Totals = { passed: 0, failed: 0, skipped: 0 }
  let isStopped = false
  let stray: unknown

  const add = (title: string, run: Run, timeoutMs = TIMEOUT_MS) => void current.entries.push({ title, run, timeoutMs })
  const test: Test = Object.assign(add, {
    each:
      <Row extends readonly unknown[]>(rows: readonly Row[]) =>
      (title: string, run: (...row: Row) => void | Promise<void>, timeoutMs?: number) => {
        for (const row of rows) add(title.replace('%s', String(row[0])), () => run(...row), timeoutMs)
      },
    if: (isSo: boolean) => (isSo ? add : (title: string) => void current.entries.push({ skipped: title })),
  })
  const kit: Kit = {
    test,
    expect,
    describe(title, define) {
      const outer = current
      current = { title, before: [], after: [], entries: [] }
      outer.entries.push(current)
      define()
      current = outer
    },
    beforeAll: (run, timeoutMs = TIMEOUT_MS) => void current.before.push({ title: 'before all', run, timeoutMs }),
    afterAll: (run, timeoutMs = TIMEOUT_MS) => void current.after.push({ title: 'after all', run, timeoutMs }),
  }

  /** Undefined when the test passed. */
  const failureOf = async ({ run, timeoutMs }: Step): Promise<string | undefined> => {
    const done = new AbortController()
    const limit = wait(timeoutMs, undefined, { signal: done.signal }).then(() => {
      throw new Error(`did not end within ${timeoutMs / 1000} seconds`)
    })
    limit.catch(() => {})
    stray = undefined
    try {
      await Promise.race([run(), limit])
      return stray === undefined ? undefined : `a promise that nobody waits for was rejected: ${messageOf(stray)}`
    } catch (error) {
      return messageOf(error)
    } finally {
      done.abort()
    }
  }
  const tell = (depth: number, word: string, title: string, failure?: string) => {
    say(`${'  '.repeat(depth)}${word.padEnd(5)} ${title}`)
    for (const line of failure?.split('\n') ?? []) say(`${'  '.repeat(depth)}      ${line}`)
  }
  const fail = (depth: number, title: string, failure: string) => {
    totals.failed++
    tell(depth, 'FAIL', title, failure)
  }

  const runGroup = async (group: Group, depth: number): Promise<void> => {
    if (group.title) say(`${'  '.repeat(depth - 1)}${group.title}`)
    let isReady = true
    for (const step of group.before) {
      const failure = isReady ? await failureOf(step) : undefined
      if (failure === undefined) continue
      isReady = false
      fail(depth, step.title, failure)
    }
    for (const entry of group.entries) {
      if (isStopped || !isReady || 'skipped' in entry) totals.skipped += countTests(entry)
      else if ('entries' in entry) await runGroup(entry, depth + 1)
      else {
        const startedMs = performance.now()
        const failure = await failureOf(entry)
        if (failure !== undefined) fail(depth, entry.title, failure)
        else {
          totals.passed++
          tell(depth, 'ok', `${entry.title} (${Math.round(performance.now() - startedMs)} ms)`)
        }
      }
    }
    for (const step of group.after) {
      const failure = await failureOf(step)
      if (failure !== undefined) fail(depth, step.title, failure)
    }
  }

  return {
    kit,
    stop() {
      isStopped = true
    },
    async run() {
      const keep = (error: unknown) => {
        stray = error ?? new Error('nothing')
      }
      process.on('unhandledRejection', keep)
      await runGroup(current, 0)
      process.off('unhandledRejection', keep)
      return totals
    },
  }
}

function countTests(entry: Group['entries'][number]): number {
  return 'entries' in entry ? entry.entries.reduce((sum, each) => sum + countTests(each), 0) : 1
}
