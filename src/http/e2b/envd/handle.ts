import { getSandbox } from '../../../core/sandboxes/sandboxes.ts'
import { ConnectError } from '../connect/error.ts'
import {
  answerCollecting,
  answerStreaming,
  answerUnary,
  errorAnswer,
  refusedStream,
  type Streaming,
  type Unary,
} from '../connect/exchange.ts'
import { compose, download, upload } from './files.ts'
import { listDir, makeDir, move, remove, stat } from './filesystem.ts'
import {
  closeStdin,
  connect,
  type KnownStarts,
  list,
  sendInput,
  sendSignal,
  start,
  streamInput,
  update,
} from './process.ts'
import type { Target } from './target.ts'
import { type Watchers, watchDir } from './watch.ts'

/** The state that is kept between requests. */
export interface EnvdState {
  starts: KnownStarts
  watchers: Watchers
}

type Call = { target: Target; request: Request; signal: AbortSignal; state: EnvdState }

const unary: Readonly<Record<string, (call: Call) => Unary>> = {
  'process.Process/List':
    ({ target, state }) =>
    () =>
      list(target, state.starts),
  'process.Process/SendInput':
    ({ target, signal }) =>
    message =>
      sendInput(target, message, signal),
  'process.Process/CloseStdin':
    ({ target }) =>
    message =>
      closeStdin(target, message),
  'process.Process/SendSignal':
    ({ target }) =>
    message =>
      sendSignal(target, message),
  'process.Process/Update':
    ({ target }) =>
    message =>
      update(target, message),
  'filesystem.Filesystem/Stat':
    ({ target, request }) =>
    message =>
      stat(target, request, message),
  'filesystem.Filesystem/MakeDir':
    ({ target, request }) =>
    message =>
      makeDir(target, request, message),
  'filesystem.Filesystem/Move':
    ({ target, request }) =>
    message =>
      move(target, request, message),
  'filesystem.Filesystem/Remove':
    ({ target, request }) =>
    message =>
      remove(target, request, message),
  'filesystem.Filesystem/ListDir':
    ({ target, request }) =>
    message =>
      listDir(target, request, message),
  'filesystem.Filesystem/CreateWatcher':
    ({ target, request, state }) =>
    message =>
      state.watchers.create(target, request, message),
  'filesystem.Filesystem/GetWatcherEvents':
    ({ target, state }) =>
    async message =>
      state.watchers.events(target, message),
  'filesystem.Filesystem/RemoveWatcher':
    ({ target, state }) =>
    async message =>
      state.watchers.remove(target, message),
}

const streaming: Readonly<Record<string, (call: Call) => Streaming>> = {
  'process.Process/Start':
    ({ target, request, state }) =>
    (message, to) =>
      start(target, state.starts, request, message, to),
  'process.Process/Connect':
    ({ target, request }) =>
    (message, to) =>
      connect(target, request, message, to),
  'filesystem.Filesystem/WatchDir':
    ({ target, request }) =>
    (message, to) =>
      watchDir(target, request, message, to),
}

const isProcedure = /^\/(?:process\.Process|filesystem\.Filesystem)\/\w+$/

/**
 * Answers a request for the commands and files of a sandbox; undefined for an unknown path. A procedure's error is an answer of
 * the Connect protocol; other paths throw an ApiError.
 */
export function handleEnvd(call: Call): Promise<Response> | undefined {
  const { request, target } = call
  const { pathname } = new URL(request.url)
  if (isProcedure.test(pathname)) return procedure(pathname.slice(1), call)
  const route = `${request.method} ${pathname}`
  if (route === 'GET /files') return download(target, request)
  if (route === 'POST /files') return upload(target, request)
  if (route === 'POST /files/compose') return compose(target, request)
  if (route === 'GET /envs')
    return Promise.resolve(Response.json(getSandbox(target.runtime, target.caller, target.sandboxId).envs))
  if (route === 'GET /metrics') return metrics(target)
  return undefined
}

/**
 * The answer to a procedure that was refused before it began; undefined for another path. A stream's refusal is an ordinary
 * answer, whose only frame has the error.
 */
export function refuseProcedure(request: Request, error: unknown): Response | undefined {
  const { pathname } = new URL(request.url)
  if (!isProcedure.test(pathname)) return undefined
  const name = pathname.slice(1)
  const isStream = Object.hasOwn(streaming, name) || name === STREAM_INPUT
  return isStream ? refusedStream(error) : errorAnswer(error)
}

const STREAM_INPUT = 'process.Process/StreamInput'

/** The names of all procedures. */
export const procedures: readonly string[] = [...Object.keys(unary), ...Object.keys(streaming), STREAM_INPUT]

async function procedure(name: string, call: Call): Promise<Response> {
  const { request, target, signal } = call
  if (request.method !== 'POST') return new Response(null, { status: 405, headers: { allow: 'POST' } })
  const [one, many] = [
    Object.hasOwn(unary, name) ? unary[name] : undefined,
    Object.hasOwn(streaming, name) ? streaming[name] : undefined,
  ]
  if (one) return await answerUnary(request, one(call))
  const watchEnd = (onEnd: () => void) => target.runtime.e2b.watch(target.sandboxId, onEnd)
  if (many) return await answerStreaming(request, many(call), watchEnd)
  if (name === STREAM_INPUT) return await answerCollecting(request, streamInput(target, signal), watchEnd)
  return errorAnswer(new ConnectError('unimplemented', `There is no procedure ${name.slice(0, 100)}.`))
}

/** Shows what the sandbox uses now. */
async function metrics({ runtime, caller, sandboxId }: Target): Promise<Response> {
  const sandbox = getSandbox(runtime, caller, sandboxId)
  const environment = await runtime.environments.get(sandbox)
  const [use] = await runtime.uses.now([sandbox])
  const { cpus = 0, memoryMb = 0, diskMb = 0 } = environment.limits ?? {}
  const [memUsed, memTotal] = [use?.memoryBytes ?? 0, memoryMb * MB]
  return Response.json({
    ts: Math.floor(Date.now() / 1000),
    cpu_count: Math.max(1, Math.ceil(cpus)),
    cpu_used_pct: cpus > 0 ? Math.round(((use?.cpus ?? 0) / cpus) * 10_000) / 100 : 0,
    mem_total: memTotal,
    mem_total_mib: memoryMb,
    mem_used: memUsed,
    mem_used_mib: Math.floor(memUsed / MB),
    mem_cache: 0,
    disk_used: use?.diskBytes ?? 0,
    disk_total: diskMb * MB,
  })
}

const MB = 1024 * 1024
