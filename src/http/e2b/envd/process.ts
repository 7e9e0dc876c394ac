import { bounds } from '../../../bounds.ts'
import {
  followOutput,
  listProcesses,
  type ProcessesUse,
  startProcess,
  useProcesses,
} from '../../../core/sandboxes/processes.ts'
import { ApiError } from '../../../errors.ts'
import type { EnvironmentProcesses, ProcessInfo } from '../../../plugin-api/index.ts'
import { type JsonObject, objectOf } from '../../../read/json.ts'
import { ConnectError } from '../connect/error.ts'
import { type Collecting, type MessageWriter, timeoutMsOf } from '../connect/exchange.ts'
import {
  endOf,
  type Input,
  inputOf,
  listedOf,
  type Selector,
  type Start,
  selectorOf,
  signalOf,
  sizeOf,
  startOf,
} from './process-messages.ts'
import type { Target } from './target.ts'
import { findUser, resolvePath, userNameOf } from './user.ts'

/** How processes were started, for lists: the environment itself keeps no more than a line. */
export interface KnownStarts {
  find(sandboxId: string, info: ProcessInfo): Start | undefined
  note(sandboxId: string, info: ProcessInfo, start: Start): void
}

const MAX_KNOWN = 1000

export function createKnownStarts(): KnownStarts {
  const starts = new Map<string, Start>()
  const keyOf = (sandboxId: string, { pid, startedAt }: ProcessInfo) => `${sandboxId} ${pid} ${startedAt}`
  return {
    find: (sandboxId, info) => starts.get(keyOf(sandboxId, info)),
    note(sandboxId, info, start) {
      starts.set(keyOf(sandboxId, info), start)
      for (const oldest of starts.keys()) {
        if (starts.size <= MAX_KNOWN) break
        starts.delete(oldest)
      }
    },
  }
}

/**
 * Starts a process and shows what it prints. The process goes on when the caller has gone. When the time is over that the caller
 * gave, it is killed with all that it started.
 */
export async function start(
  { runtime, caller, sandboxId }: Target,
  known: KnownStarts,
  request: Request,
  message: JsonObject,
  to: MessageWriter,
) {
  const timeoutMs = timeoutMsOf(request)
  const wanted = startOf(message)
  using use = await useProcesses(runtime, caller, sandboxId)
  const user = await findUser(use.environment.files, userNameOf(request))
  const { command, envs, pty, tag, stdin, cwd } = wanted
  const info = await startProcess(runtime, caller, sandboxId, {
    command,
    env: envs,
    user: user.name,
    stdin: stdin ? 'pipe' : 'ignore',
    waitForReader: 'attached',
    cwd: resolvePath(user, cwd ?? user.home),
    ...(pty && { pty }),
    ...(tag !== undefined && { name: tag }),
  })
  known.note(sandboxId, info, wanted)
  const { processes } = use
  const late = new AbortController()
  const expire = async () => {
    late.abort()
    const now = await processes.get(info.pid)
    // Another process may have this pid by now.
    if (now.startedAt === info.startedAt) await processes.signal(info.pid, 'SIGKILL')
  }
  // This fails when the process or its sandbox has ended meanwhile.
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => void expire().catch(() => {}), timeoutMs)
  timer?.unref()
  const isOver = await show(processes, info, 0, to, late.signal)
  if (isOver) clearTimeout(timer)
}

/** Shows what a process prints from now on. */
export async function connect(target: Target, request: Request, message: JsonObject, to: MessageWriter) {
  const timeoutMs = timeoutMsOf(request)
  using use = await useProcesses(target.runtime, target.caller, target.sandboxId)
  const info = await findRunning(use.processes, selectorOf(message))
  const late = new AbortController()
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => late.abort(), timeoutMs)
  try {
    await show(use.processes, info, info.outputEnd, to, late.signal)
  } finally {
    clearTimeout(timer)
  }
}

/** How often a process, which waits for its readers, is read on behalf of a slow one. */
const STILL_THERE_MS = 2000

/**
 * Writes a process's events. Returns true when the process has ended, and false when the reader has gone before. Throws
 * deadline_exceeded when `late` aborts.
 */
async function show(
  processes: EnvironmentProcesses,
  { pid, pty }: ProcessInfo,
  offset: number,
  to: MessageWriter,
  late: AbortSignal,
): Promise<boolean> {
  const keepAlive = { event: { keepalive: {} } }
  to.write({ event: { start: { pid } } })
  to.keepAlive(keepAlive)
  const signal = AbortSignal.any([to.signal, late])
  let at = offset
  try {
    for await (const event of followOutput(processes, pid, { offset, follow: true, signal })) {
      if (event.type === 'gap') continue
      if (event.type === 'exit') {
        to.write({ event: { end: endOf(event) } })
        return true
      }
      const stream = pty ? 'pty' : event.type
      to.write({ event: { data: { [stream]: event.bytes.toBase64() } } })
      at = event.offset + event.bytes.byteLength
      await roomFor(to, () => processes.read(pid, at, { wait: false }))
      late.throwIfAborted()
    }
  } catch (error) {
    if (late.aborted) throw new ConnectError('deadline_exceeded', 'context deadline exceeded')
    if (to.signal.aborted) return false
    throw error
  }
  return false
}

/** Waits until a slow reader has room. Calls `look` meanwhile, which shows that the reader is still there. */
async function roomFor(to: MessageWriter, look: () => Promise<unknown>): Promise<void> {
  const timer = setInterval(() => void look().catch(() => {}), STILL_THERE_MS)
  try {
    await to.room()
  } finally {
    clearInterval(timer)
  }
}

/** Throws not_found for a process that has ended, and for one that never existed. */
async function findRunning(processes: EnvironmentProcesses, selector: Selector): Promise<ProcessInfo> {
  const missing = () =>
    new ConnectError(
      'not_found',
      'pid' in selector
        ? `process with pid ${selector.pid} not found`
        : `process with tag ${selector.tag.slice(0, bounds.id)} not found`,
    )
  if ('tag' in selector) {
    const found = (await processes.list()).findLast(({ name, exit }) => name === selector.tag && !exit)
    if (!found) throw missing()
    return found
  }
  const info = await processes.get(selector.pid).catch(error => {
    throw error instanceof ApiError && error.code === 'process_not_found' ? missing() : error
  })
  if (info.exit) throw missing()
  return info
}

export async function list({ runtime, caller, sandboxId }: Target, known: KnownStarts): Promise<object> {
  using use = await useProcesses(runtime, caller, sandboxId)
  const running = (await listProcesses(runtime, use)).filter(({ exit }) => !exit)
  return { processes: running.map(info => listedOf(info, known.find(sandboxId, info))) }
}

export async function sendInput(target: Target, message: JsonObject, signal: AbortSignal): Promise<object> {
  const input = inputOf(message)
  await onProcess(target, message, ({ processes }, info) => feed(processes, info, input, signal))
  return {}
}

/** Takes input as a stream, whose first message names the process. */
export function streamInput(target: Target, signal: AbortSignal): Collecting {
  let selector: JsonObject | undefined
  return {
    async take(message) {
      const [begin, data] = [objectOf(message.start), objectOf(message.data)]
      if (begin) selector = begin
      else if (data) {
        if (!selector)
          throw new ConnectError('invalid_argument', 'The stream must begin with the process that it is for.')
        await sendInput(target, { ...selector, ...data }, signal)
      }
    },
    end: () => ({}),
  }
}

export async function closeStdin(target: Target, message: JsonObject): Promise<object> {
  await onProcess(target, message, ({ processes }, info) => {
    if (info.pty) throw new ConnectError('failed_precondition', 'a terminal has no stdin to close: send it the byte 4')
    return processes.closeStdin(info.pid)
  })
  return {}
}

export async function sendSignal(target: Target, message: JsonObject): Promise<object> {
  const signal = signalOf(message)
  await onProcess(target, message, async ({ processes }, { pid }) => {
    await processes.signal(pid, signal)
    if (signal === 'SIGKILL') await untilEnded(processes, pid)
  })
  return {}
}

/** How long an answer waits for the end of a killed process: the caller may look for it at once. */
const KILLED_WITHIN_MS = 2000

async function untilEnded(processes: EnvironmentProcesses, pid: number): Promise<void> {
  const ended = processes.read(pid, Number.MAX_SAFE_INTEGER, {
    wait: true,
    signal: AbortSignal.timeout(KILLED_WITHIN_MS),
  })
  // The process has not ended in time, or is forgotten already.
  await ended.catch(() => {})
}

export async function update(target: Target, message: JsonObject): Promise<object> {
  const pty = objectOf(message.pty)
  await onProcess(target, message, async ({ processes }, info) => {
    if (pty) await processes.resize(info.pid, sizeOf(pty))
  })
  return {}
}

async function onProcess(
  { runtime, caller, sandboxId }: Target,
  message: JsonObject,
  act: (use: ProcessesUse, info: ProcessInfo) => Promise<void>,
): Promise<void> {
  const selector = selectorOf(message)
  using use = await useProcesses(runtime, caller, sandboxId)
  await act(use, await findRunning(use.processes, selector))
}

async function feed(
  processes: EnvironmentProcesses,
  { pid, pty, stdin }: ProcessInfo,
  { kind, bytes }: Input,
  signal: AbortSignal,
): Promise<void> {
  if (kind === 'pty' && !pty) throw new ConnectError('failed_precondition', 'tty not assigned to process')
  if (kind === 'stdin' && (pty || !stdin)) throw new ConnectError('failed_precondition', 'stdin not enabled or closed')
  await processes.write(pid, bytes, signal)
}
