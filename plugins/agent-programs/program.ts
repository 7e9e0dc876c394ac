import { lines } from '../../src/environment/lines.ts'
import { terminateOn } from '../../src/environment/termination.ts'
import { messageOf } from '../../src/errors.ts'
import type { Environment } from '../../src/plugin-api/index.ts'
import { isObject, type JsonObject, parseJson } from '../../src/read/json.ts'
import { SessionLost } from './errors.ts'

/** A program in a sandbox that takes and gives a JSON object a line. It lives until it is ended, whatever turn started it. */
export interface Program {
  readonly isAlive: boolean
  /** Why it ended, in words for who chats. Never rejects. */
  readonly ended: Promise<string>
  /** Called with each object that it says. What is no JSON object is dropped. */
  onMessage: (message: JsonObject) => void
  /** In order; nothing once it has ended. */
  send(message: object): void
  /** When it resolves, the program and all that it started are dead. Never rejects. */
  kill(): Promise<void>
  /** Lets it end by itself: what it left running in the background lives on. One that does not is killed. */
  end(): Promise<void>
}

/** How long a program may take to end once its input has, and once it is asked to by a signal. */
const ASK_MS = 300
const END_MS = 2000
const MAX_LAST_WORDS = 1000
/** What waits for a program that does not read: a prompt with its images is the most that one is told. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024

/** The first start reads hundreds of megabytes from a disk that may be slow. */
const START_MS = 60_000

export interface ProgramOptions {
  command: readonly string[]
  cwd: string
  env: Readonly<Record<string, string>>
  /** Is never told. */
  secret?: string
}

/** Starts a program and does `begin` with it. When that fails, is aborted or takes too long, nothing of it is left. */
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
    const reason = isLate ? `nothing came within ${START_MS / 1000} seconds.` : messageOf(error)
    throw new Error(`${options.command[0]} did not start: ${reason}`)
  }
}

async function startProgram(environment: Environment, { secret, ...command }: ProgramOptions): Promise<Program> {
  const child = await environment.spawn({ ...command, stdin: 'pipe' })
  const stdin = child.stdin?.getWriter()
  stdin?.closed.catch(() => {})
  let lastWords = ''
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
      lastWords = (lastWords + decoder.decode(chunk, { stream: true })).slice(-MAX_LAST_WORDS)
    }
  }
  const reading = Promise.allSettled([read(), listen()])
  const ended = child.exited.then(
    async ({ exitCode }) => {
      isAlive = false
      await reading
      const words = secret ? lastWords.replaceAll(secret, '***') : lastWords
      return [problem || `The program ended with exit code ${exitCode}.`, words.trim()].filter(Boolean).join(' ')
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
        problem = 'The program was ended: it reads too little of what it is told.'
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
      const timers = [setTimeout(() => child.kill('SIGTERM'), ASK_MS), setTimeout(() => child.kill(), END_MS)]
      await ended
      for (const timer of timers) clearTimeout(timer)
    },
  }
  return program
}
