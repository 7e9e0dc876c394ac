import { ApiError, messageOf } from '../../src/errors.ts'
import type { TerminalSize } from '../../src/plugin-api/index.ts'
import { readBytes } from '../../src/read/bytes.ts'
import { objectOf, parseJson } from '../../src/read/json.ts'
import { readFrames, requestFrame } from './frames.ts'
import { retrying } from './retry.ts'
import type { Access } from './sdk.ts'

/** A process to start. */
export interface StartRequest {
  command: readonly string[]
  env?: Readonly<Record<string, string>>
  pty?: TerminalSize
}

export type ProcessEvent =
  | { type: 'start'; pid: number }
  | { type: 'data'; stream: 'stdout' | 'stderr'; bytes: Buffer }
  /** The started process ended. The exit code is undefined when a signal ended it. */
  | { type: 'end'; exitCode: number | undefined }

/** The daemon in one sandbox. It speaks Connect RPC in JSON, as e2b 2.51.0 does; everything is done as root. */
export interface Envd {
  /** Starts a process and follows it. When the loop is left, the process goes on and its output is lost. */
  start(request: StartRequest, signal: AbortSignal): AsyncGenerator<ProcessEvent, void>
  sendInput(pid: number, kind: 'stdin' | 'pty', bytes: Uint8Array, signal?: AbortSignal): Promise<void>
  closeInput(pid: number): Promise<void>
  /** Signals that process alone, not its children. */
  signal(pid: number, name: 'SIGTERM' | 'SIGKILL'): Promise<void>
  resize(pid: number, size: TerminalSize): Promise<void>
  /** The size is undefined where the answer does not say it. */
  download(path: string, signal?: AbortSignal): Promise<{ size: number | undefined; body: ReadableStream<Uint8Array> }>
  /** Replaces a file's content; its mode stays. */
  upload(path: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void>
}

/** E2B's proxy answered that the sandbox is not running. The request had no effect, so it may be repeated. */
export class NotRunning extends Error {}

/** An error that the daemon answered. */
class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly retryAfterMs: number,
    message: string,
  ) {
    super(message)
  }
}

const AUTHORIZATION = `Basic ${Buffer.from('root:').toString('base64')}`
const MAX_ANSWER_BYTES = 64 * 1024

export function createEnvd({ url, headers }: Access): Envd {
  const send = async (path: string, init: RequestInit): Promise<Response> => {
    const given = { ...headers, authorization: AUTHORIZATION, ...(init.headers as Record<string, string>) }
    // A command may be silent for hours: only the signal ends a request.
    const response = await fetch(`${url}${path}`, { ...init, headers: given, timeout: false } as RequestInit)
    if (response.ok) return response
    throw await readRefusal(response)
  }

  /** Retries a request that may be repeated, or that was never sent or never done. */
  const again = <T>(attempt: () => Promise<T>, isRepeatable: boolean, signal?: AbortSignal) =>
    retrying(attempt, {
      ...(signal && { signal }),
      retryWaitMs(error) {
        if (error instanceof NotRunning) return undefined
        if (error instanceof Refusal) {
          const isBusy = error.status === 429 || (isRepeatable && error.status >= 500 && error.status !== 507)
          return isBusy ? error.retryAfterMs : undefined
        }
        return isRepeatable || isUnsent(error) ? 0 : undefined
      },
    }).catch(error => {
      signal?.throwIfAborted()
      throw toApiError(error)
    })

  const call = async (method: string, body: object, isRepeatable: boolean, signal?: AbortSignal): Promise<void> => {
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'connect-protocol-version': '1' },
      body: JSON.stringify(body),
      ...(signal && { signal }),
    }
    const response = await again(() => send(`/process.Process/${method}`, init), isRepeatable, signal)
    await response.body?.cancel()
  }

  const fileUrl = (path: string) => `/files?path=${encodeURIComponent(path)}&username=root`

  return {
    async *start({ command: [cmd = '', ...args], env = {}, pty }, signal) {
      const process = { cmd, args, envs: env, cwd: '/' }
      const wanted = { process, ...(pty ? { pty: { size: { cols: pty.columns, rows: pty.rows } } } : { stdin: true }) }
      const init = {
        method: 'POST',
        headers: {
          'content-type': 'application/connect+json',
          'connect-protocol-version': '1',
          // A proxy would close a silent connection.
          'keepalive-ping-interval': '50',
        },
        body: requestFrame(wanted),
        signal,
      }
      const response = await again(() => send('/process.Process/Start', init), false, signal)
      for await (const message of readFrames(response.body)) {
        const event = parseEvent(message)
        if (event) yield event
      }
    },
    sendInput: (pid, kind, bytes, signal) =>
      call('SendInput', { process: { pid }, input: { [kind]: Buffer.from(bytes).toString('base64') } }, false, signal),
    closeInput: pid => call('CloseStdin', { process: { pid } }, true),
    signal: (pid, name) => call('SendSignal', { process: { pid }, signal: `SIGNAL_${name}` }, true),
    resize: (pid, { columns, rows }) =>
      call('Update', { process: { pid }, pty: { size: { cols: columns, rows } } }, true),
    async download(path, signal) {
      // A compressed answer would have no length.
      const init = { headers: { 'accept-encoding': 'identity' }, ...(signal && { signal }) }
      const response = await again(() => send(fileUrl(path), init), true, signal)
      const length = response.headers.get('content-length')
      return { size: length === null ? undefined : Number(length), body: response.body ?? empty() }
    },
    async upload(path, bytes, signal) {
      const boundary = `threadbox-${crypto.randomUUID()}`
      const init = {
        method: 'POST',
        headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
        body: multipart(boundary, bytes),
        ...(signal && { signal }),
      }
      const response = await again(() => send(fileUrl(path), init), true, signal)
      await response.body?.cancel()
    },
  }
}

const empty = () => new Blob([]).stream() as ReadableStream<Uint8Array>

async function readRefusal(response: Response): Promise<Error> {
  const text = (await readBytes(response.body, MAX_ANSWER_BYTES).catch(() => undefined))?.toString('utf8') ?? ''
  const answer = objectOf(parseJson(text))
  const message = typeof answer?.message === 'string' ? answer.message.slice(0, 1000) : `HTTP ${response.status}`
  // The proxy before the sandboxes names the one that it does not find; envd's own errors have no such field.
  if (response.status === 502 && answer && 'sandboxId' in answer) return new NotRunning(message)
  const seconds = Number(response.headers.get('retry-after') ?? 0)
  return new Refusal(response.status, Number.isFinite(seconds) ? seconds * 1000 : 0, message)
}

/** Converts an error of a request to the error that a caller gets. */
export function toApiError(error: unknown): Error {
  if (error instanceof ApiError || error instanceof NotRunning) return error
  if (!(error instanceof Refusal)) {
    return new ApiError('sandbox_unavailable', `The sandbox cannot be reached: ${messageOf(error)}`)
  }
  const { status, message } = error
  if (status === 404) return new ApiError('file_not_found', message)
  if (status === 507) return new ApiError('disk_full', 'No space is left in the sandbox.')
  if (status === 400 || status === 409) return new ApiError('invalid_request', message)
  return new ApiError('sandbox_unavailable', `The sandbox's daemon failed: ${message}`)
}

/** Whether the request failed before a connection was made. */
const isUnsent = (error: unknown): boolean =>
  ['ConnectionRefused', 'FailedToOpenSocket', 'ENOTFOUND', 'EAI_AGAIN'].includes(
    String((error as { code?: unknown } | undefined)?.code),
  )

function parseEvent(message: unknown): ProcessEvent | undefined {
  const event = objectOf(objectOf(message)?.event)
  const [start, data, end] = [objectOf(event?.start), objectOf(event?.data), objectOf(event?.end)]
  if (start) return { type: 'start', pid: Number(start.pid) }
  if (data) {
    const stream = typeof data.stderr === 'string' ? 'stderr' : 'stdout'
    const text = data.stdout ?? data.stderr ?? data.pty
    return { type: 'data', stream, bytes: Buffer.from(typeof text === 'string' ? text : '', 'base64') }
  }
  // Protobuf's JSON leaves out fields that are zero or false.
  if (end) return { type: 'end', exitCode: end.exited === true ? Number(end.exitCode ?? 0) : undefined }
  return undefined
}

/** A form with one part, `file`, which every version of envd accepts. */
function multipart(boundary: string, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const disposition = 'Content-Disposition: form-data; name="file"; filename="file"'
  const head = `--${boundary}\r\n${disposition}\r\nContent-Type: application/octet-stream\r\n\r\n`
  return Buffer.concat([Buffer.from(head), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)])
}
