import { ApiError } from '../../src/errors.ts'
import type { TerminalSize } from '../../src/plugin-api/index.ts'
import { type Envd, toApiError } from './envd.ts'
import { createMarkerParser } from './marker-parser.ts'
import { createOutputStream, type OutputStream } from './output-stream.ts'

/** One of our scripts, running inside. Its reports about the command are separated from the command's own output. */
export interface MarkedCommand {
  /** The number by which the sandbox finds the command's processes. */
  readonly mark: number
  /** The script's pid, to which envd sends input and signals. */
  readonly pid: number
  /** Its first report, such as `pid 12`. */
  readonly report: string
  readonly stdout: ReadableStream<Uint8Array>
  readonly stderr: ReadableStream<Uint8Array>
  /** Resolves to the last report, `end CODE`, or to undefined when the script was killed. Rejects when the connection breaks. */
  readonly ended: Promise<string | undefined>
  /** Stops following it: `ended` and both outputs fail with this error. */
  fail(error: Error): void
}

/** After the reports of the end, only processes that the command left behind still print. */
const FOLLOW_MS = 1000

/** A number that is unique in the sandbox, and small enough for a resource limit. */
const newMark = (): number => 2 ** 45 + Math.floor(Math.random() * 2 ** 45)

export interface MarkedCommandRequest {
  command(mark: number): readonly string[]
  env?: Readonly<Record<string, string>>
  pty?: TerminalSize
}

/** Starts a script. Resolves at its first report; rejects when it cannot be started. */
export async function startMarkedCommand(
  envd: Envd,
  { command, ...rest }: MarkedCommandRequest,
): Promise<MarkedCommand> {
  const mark = newMark()
  const [stdout, stderr] = [createOutputStream(), createOutputStream()]
  const abort = new AbortController()
  const begun = Promise.withResolvers<{ pid: number; report: string }>()
  const ended = Promise.withResolvers<string | undefined>()
  ended.promise.catch(() => {})
  const fail = (error: unknown) => {
    begun.reject(error)
    ended.reject(error)
    for (const stream of [stdout, stderr]) stream.fail(error)
    abort.abort(error)
  }

  const follow = async () => {
    let pid = 0
    let isBegun = false
    let last: string | undefined
    // A terminal has one output.
    const open = new Map<string, { stream: OutputStream; parser: ReturnType<typeof createMarkerParser> }>([
      ['stdout', { stream: stdout, parser: createMarkerParser(mark) }],
      ...(rest.pty ? [] : [['stderr', { stream: stderr, parser: createMarkerParser(mark) }] as const]),
    ])
    if (rest.pty) stderr.end()
    const close = (name: string) => {
      open.get(name)?.stream.end()
      open.delete(name)
      if (open.size > 0) return
      ended.resolve(last)
      if (!rest.pty) void envd.closeInput(pid).catch(() => {})
      setTimeout(() => abort.abort(), FOLLOW_MS)
    }
    const take = async (name: string, chunk: Buffer): Promise<void> => {
      const found = open.get(name)
      if (!found) return
      const { before, report, after } = found.parser.take(chunk)
      if (isBegun) await found.stream.write(before)
      if (report === undefined) return
      if (!isBegun) {
        isBegun = true
        begun.resolve({ pid, report })
      } else if (report.startsWith('end')) {
        if (name === 'stdout') last = report
        return close(name)
      }
      if (after.byteLength > 0) await take(name, after)
    }
    for await (const event of envd.start({ ...rest, command: command(mark) }, abort.signal)) {
      if (event.type === 'start') pid = event.pid
      else if (event.type === 'data') await take(event.stream, event.bytes)
      else {
        if (!isBegun) throw new ApiError('sandbox_unavailable', 'The sandbox could not start a command.')
        // The script killed itself with its tree: envd drops its last report then.
        if (event.exitCode === 137) last ??= 'end 137'
        for (const [name, { stream, parser }] of open) {
          await stream.write(parser.rest())
          close(name)
        }
      }
    }
  }
  // Once it has ended, `fail` has no effect.
  void follow().catch(error => fail(toApiError(error)))

  const { pid, report } = await begun.promise
  return { mark, pid, report, stdout: stdout.readable, stderr: stderr.readable, ended: ended.promise, fail }
}
