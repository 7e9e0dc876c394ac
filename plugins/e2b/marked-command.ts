import { ApiError } from '../../src/errors.ts'
import type { TerminalSize } from '../../src/plugin-api/index.ts'
import { type Envd, failureOf } from './envd.ts'
import { createCutter } from './marker-parser.ts'
import { createLane, type Lane } from './output-stream.ts'

/** A process of ours inside: one of the scripts, with what it says about the command told from what that prints. */
export interface Call {
  /** By which it is known inside. */
  readonly mark: number
  /** envd's, for input and signals. */
  readonly pid: number
  /** What it said first. */
  readonly said: string
  readonly stdout: ReadableStream<Uint8Array>
  readonly stderr: ReadableStream<Uint8Array>
  /** What it said last: `end CODE`. Undefined when it ended without: it was killed. Rejects when the connection broke. */
  readonly ended: Promise<string | undefined>
  /** Gives it up, with the reason that `ended` rejects by. */
  fail(error: Error): void
}

/** What it still prints after its end is of others. */
const FOLLOW_MS = 1000

/** A number that no other call of a sandbox has, and below what limits can be set to. */
const newMark = (): number => 2 ** 45 + Math.floor(Math.random() * 2 ** 45)

export interface CallRequest {
  command(mark: number): readonly string[]
  env?: Readonly<Record<string, string>>
  pty?: TerminalSize
}

/** Resolves when it has said its first word. Rejects when it cannot be started. */
export async function startCall(envd: Envd, { command, ...rest }: CallRequest): Promise<Call> {
  const mark = newMark()
  const [stdout, stderr] = [createLane(), createLane()]
  const abort = new AbortController()
  const begun = Promise.withResolvers<{ pid: number; said: string }>()
  const ended = Promise.withResolvers<string | undefined>()
  ended.promise.catch(() => {})
  const fail = (error: unknown) => {
    begun.reject(error)
    ended.reject(error)
    for (const lane of [stdout, stderr]) lane.fail(error)
    abort.abort(error)
  }

  const follow = async () => {
    let pid = 0
    let isBegun = false
    let last: string | undefined
    // A terminal has one output.
    const open = new Map<string, { lane: Lane; cutter: ReturnType<typeof createCutter> }>([
      ['stdout', { lane: stdout, cutter: createCutter(mark) }],
      ...(rest.pty ? [] : [['stderr', { lane: stderr, cutter: createCutter(mark) }] as const]),
    ])
    if (rest.pty) stderr.end()
    const close = (name: string) => {
      open.get(name)?.lane.end()
      open.delete(name)
      if (open.size > 0) return
      ended.resolve(last)
      if (!rest.pty) void envd.closeInput(pid).catch(() => {})
      setTimeout(() => abort.abort(), FOLLOW_MS)
    }
    const take = async (name: string, chunk: Buffer): Promise<void> => {
      const found = open.get(name)
      if (!found) return
      const { before, said, after } = found.cutter.take(chunk)
      if (isBegun) await found.lane.write(before)
      if (said === undefined) return
      if (!isBegun) {
        isBegun = true
        begun.resolve({ pid, said })
      } else if (said.startsWith('end')) {
        if (name === 'stdout') last = said
        return close(name)
      }
      if (after.byteLength > 0) await take(name, after)
    }
    for await (const event of envd.start({ ...rest, command: command(mark) }, abort.signal)) {
      if (event.type === 'start') pid = event.pid
      else if (event.type === 'data') await take(event.lane, event.bytes)
      else {
        if (!isBegun) throw new ApiError('sandbox_unavailable', 'The sandbox could not start a command.')
        // Killed by its own hand, with its tree: envd drops what it says then.
        if (event.exitCode === 137) last ??= 'end 137'
        for (const [name, { lane, cutter }] of open) {
          await lane.write(cutter.rest())
          close(name)
        }
      }
    }
  }
  // After its end nothing is left to fail.
  void follow().catch(error => fail(failureOf(error)))

  const { pid, said } = await begun.promise
  return { mark, pid, said, stdout: stdout.readable, stderr: stderr.readable, ended: ended.promise, fail }
}
