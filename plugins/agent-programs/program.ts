import { terminateOn } from '../../src/environment/termination.ts'
import { messageOf } from '../../src/errors.ts'
import type { Environment } from '../../src/plugin-api/index.ts'
import { isObject, type JsonObject, parseJson } from '../../src/read/json.ts'
import { lines } from '../../src/read/lines.ts'
import { SessionLost } from './errors.ts'

/** A program in a sandbox that reads and writes one JSON object a line. It outlives the turn that started it. */
export interface Program {
  readonly isAlive: boolean
  /** Resolves at its end with the reason, as a sentence for the user. Never rejects. */
  readonly ended: Promise<string>
  /** Called with each object that it writes. A line that is not a JSON object is dropped. */
  onMessage: (message: JsonObject) => void
  /** Queues a message. Does nothing once the program has ended. */
  send(message: object): void
  /** Kills the program and everything that it started. Resolves when they are dead; never rejects. */
  kill(): Promise<void>
  /** Lets it end by itself, so that its background processes live on; kills it after 2 s. Never rejects. */
  end(): Promise<void>
}

/** How long after its input was closed a program gets SIGTERM, and then SIGKILL. */
const TERMINATE_MS = 300
const KILL_MS = 2000
const MAX_STDERR_CHARS = 1000
/** Messages may wait for a program that does not read, up to this size: enough for one prompt with its images. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024

/** The first start reads hundreds of megabytes from a disk that may be slow. */
const START_MS = 60_000

export interface ProgramOptions {
  command: readonly string[]
  cwd: string
  env: Readonly<Record<string, string>>
  /** Replaced by asterisks in messages. */
  secret?: string
}

/** Starts a program and runs `begin` with it. When that fails, is aborted or takes too long, the program is killed. */
export async function openProgram<T>(
  environment: Environment,
  options: ProgramOptions,
  signal: AbortSignal,
  begin: (program: Program) => Promise<T>,
): Promise<T> {
  const program = await startProgram(environment, options)
  using termination = terminateOn({ timeoutMs: START_MS, signal }, () => void program.kill())
  try {
    return await begin(program)
  } catch (error) {
    await program.kill()
    if (error instanceof SessionLost) throw error
    const isLate = termination.reason === 'timeout'
    const reason = isLate ? `it did not answer within ${START_MS / 1000} seconds.` : messageOf(error)
    throw new Error(`${options.command[0]} did not start: ${reason}`)
  }
}

async function startProgram(environment: Environment, { secret, ...command }: ProgramOptions): Promise<Program> {
  const child = await environment.spawn({ ...command, stdin: 'pipe' })
  const stdin = child.stdin?.getWriter()
  stdin?.closed.catch(() => {})
  let stderrTail = ''
  let isAlive = true
  let isEnding = false
  let unreadBytes = 0
  let problem = ''

  async function read(): Promise<void> {
    for await (const line of lines(child.stdout)) {
      const message = parseJson(line)
      if (isObject(message)) program.onMessage(message)
    }
  }
  async function listen(): Promise<void> {
    const decoder = new TextDecoder()
    for await (const chunk of child.stderr) {
      stderrTail = (stderrTail + decoder.decode(chunk, { stream: true })).slice(-MAX_STDERR_CHARS)
    }
  }
  const reading = Promise.allSettled([read(), listen()])
  const ended = child.exited.then(
    async ({ exitCode }) => {
      isAlive = false
      await reading
      const tail = secret ? stderrTail.replaceAll(secret, '***') : stderrTail
      return [problem || `The program ended with exit code ${exitCode}.`, tail.trim()].filter(Boolean).join(' ')
    },
    error => {
      isAlive = false
      return messageOf(error)
    },
  )

  const program: Program = {
    get isAlive() {
      return isAlive
    },
    ended,
    onMessage: () => {},
    send(message) {
      if (!isAlive || isEnding || problem) return
      const bytes = Buffer.from(`${JSON.stringify(message)}\n`)
      unreadBytes += bytes.byteLength
      if (unreadBytes > MAX_UNREAD_BYTES) {
        problem = 'The program was ended: it does not read its input fast enough.'
        return void program.kill()
      }
      const taken = () => {
        unreadBytes -= bytes.byteLength
      }
      stdin?.write(bytes).then(taken, taken)
    },
    async kill() {
      if (isAlive) child.kill()
      await ended
    },
    async end() {
      if (!isEnding) stdin?.close().catch(() => {})
      isEnding = true
      const timers = [setTimeout(() => child.kill('SIGTERM'), TERMINATE_MS), setTimeout(() => child.kill(), KILL_MS)]
      await ended
      for (const timer of timers) clearTimeout(timer)
    },
  }
  return program
}
