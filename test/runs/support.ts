import type { Database } from 'bun:sqlite'
import { afterEach } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId } from '../../src/db/id.ts'
import { openDatabase } from '../../src/db/open.ts'
import { insertSandbox } from '../../src/db/sandboxes.ts'
import { ensureTeam } from '../../src/db/teams.ts'
import { insertThread } from '../../src/db/threads.ts'
import type { Sandbox } from '../../src/model/sandbox.ts'
import type { Thread } from '../../src/model/thread.ts'
import type { EngineEnd } from '../../src/plugin-api/index.ts'
import { createRuns, type Runs, type RunsOptions } from '../../src/runs/registry.ts'
import type { Execute } from '../../src/runs/run.ts'
import type { RunInit } from '../../src/runs/run-init.ts'
import type { RunEvent } from '../../src/stream/run-event.ts'

const cleanups: (() => unknown)[] = []

/** Done after the test, in order. */
export const cleanUpLater = (cleanup: () => unknown): void => void cleanups.push(cleanup)

/** To be called by each file that uses what is here: a hook belongs to the file that registers it. */
export function cleanUpAfterEach(): void {
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup()
  })
}

/** A path for a database in a directory of its own, removed after the test. */
export function temporaryPath(): string {
  const directory = mkdtempSync(join(tmpdir(), 'threadbox-'))
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }))
  return join(directory, 'threadbox.db')
}

export function openTemporary(path = temporaryPath()): Database {
  const db = openDatabase(path)
  cleanups.unshift(() => db.close())
  return db
}

export interface Scene {
  db: Database
  path: string
  runs: Runs
  sandbox: Sandbox
  thread: Thread
  log: string[]
  init: RunInit
}

export const addSandbox = (db: Database): Sandbox =>
  insertSandbox(db, {
    id: newId('sbx'),
    teamId: ensureTeam(db, 'team').id,
    agentSlug: 'echo',
    agentName: 'Echo',
    environmentId: newId('env'),
    backend: 'nsjail',
    status: 'active',
    envs: {},
    cwd: '/home/user',
    network: {},
  })

/** A sandbox with a thread, in a database of its own. */
export function scene(options: Partial<RunsOptions> = {}): Scene {
  const path = temporaryPath()
  const db = openTemporary(path)
  const log: string[] = []
  const runs = createRuns(db, { log: line => log.push(line), graceMs: 20, ...options })
  const sandbox = addSandbox(db)
  const thread = insertThread(db, { sandboxId: sandbox.id })
  return {
    db,
    path,
    runs,
    sandbox,
    thread,
    log,
    init: { threadId: thread.id, sandboxId: sandbox.id, teamId: sandbox.teamId, agentSlug: 'echo', engine: 'puppet' },
  }
}

/** An engine that does what the test says, when it says it. */
export interface Puppet {
  execute: Execute
  say(...events: RunEvent[]): void
  end(end?: EngineEnd): void
  throw(error: unknown): void
  readonly signal: AbortSignal
  /** Resolves once all that was said is taken. */
  taken(): Promise<void>
  readonly returned: boolean
  /** Resolves when the generator is over. */
  readonly gone: Promise<void>
}

export function puppet({ deaf = false } = {}): Puppet {
  type Step = { event: RunEvent } | { end: EngineEnd } | { error: unknown }
  const steps: Step[] = []
  let wake = () => {}
  let idle = Promise.withResolvers<void>()
  let signal: AbortSignal | undefined
  let returned = false
  const gone = Promise.withResolvers<void>()
  const push = (step: Step) => {
    if (steps.length === 0) idle = Promise.withResolvers()
    steps.push(step)
    wake()
  }
  return {
    async *execute(given) {
      signal = given
      try {
        for (;;) {
          if (given.aborted && !deaf) return { status: 'cancelled' }
          const step = steps.shift()
          if (!step) {
            idle.resolve()
            await new Promise<void>(resolve => {
              wake = resolve
              if (!deaf) given.addEventListener('abort', () => resolve())
            })
          } else if ('event' in step) yield step.event
          else if ('end' in step) return step.end
          else throw step.error
        }
      } finally {
        returned = true
        gone.resolve()
      }
    },
    say: (...events) => {
      for (const event of events) push({ event })
    },
    end: (end = { status: 'completed' }) => push({ end }),
    throw: error => push({ error }),
    get signal() {
      if (!signal) throw new Error('not started')
      return signal
    },
    taken: () => idle.promise,
    gone: gone.promise,
    get returned() {
      return returned
    },
  }
}

export const text = (delta: string, id = 't'): RunEvent => ({ type: 'text', id, delta })

export interface Frame {
  id: string
  seq: number
  chunk: { type: string; [field: string]: unknown }
}

/** What a body says: its frames, its comments, and whether it came to its end. */
export interface Reading {
  frames: Frame[]
  comments: string[]
  done: boolean
}

export const typesOf = ({ frames }: Reading) => frames.map(({ chunk }) => chunk.type)

/** Reads a body until its end, or until `enough`. */
export async function read(body: ReadableStream<Uint8Array>, enough = (_: Reading) => false): Promise<Reading> {
  const reading: Reading = { frames: [], comments: [], done: false }
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of body) {
    rest += decoder.decode(bytes, { stream: true })
    const events = rest.split('\n\n')
    rest = events.pop() ?? ''
    for (const event of events) {
      if (event.startsWith(':')) reading.comments.push(event)
      else if (event === 'data: [DONE]') reading.done = true
      else {
        const [, id, seq, json] = /^id: (run_[^/]+)\/(\d+)\ndata: (.*)$/.exec(event) ?? []
        reading.frames.push({ id: `${id}/${seq}`, seq: Number(seq), chunk: JSON.parse(json ?? '') })
      }
    }
    if (enough(reading)) break
  }
  return reading
}
