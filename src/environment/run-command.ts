import { ApiError } from '../errors.ts'
import type { Environment, SpawnOptions } from '../plugin-api/index.ts'
import { readEach } from '../read/bytes.ts'
import { terminateOn } from './termination.ts'

export interface CommandOptions extends Pick<SpawnOptions, 'command' | 'cwd' | 'env' | 'signal'> {
  timeoutMs?: number
  /** Each of stdout and stderr is kept up to this size; what comes after is read and dropped. */
  maxOutputBytes?: number
  /** Sees the output as it comes, before any cut. The command waits while it does. */
  onOutput?: (stream: 'stdout' | 'stderr', chunk: Uint8Array) => void | Promise<void>
}

export interface CommandResult {
  stdout: string
  stderr: string
  exitCode: number
  /** True when stdout or stderr was longer than what is given here. */
  truncated: boolean
}

const DEFAULT_MAX_OUTPUT_BYTES = 1024 * 1024

/**
 * Runs a command to its end and keeps its output, as UTF-8; bytes that are not UTF-8 are replaced. Throws command_timeout
 * with what was printed, or the signal's reason, whichever came first; both after the whole process tree is dead.
 */
export async function runCommand(
  environment: Pick<Environment, 'spawn'>,
  options: CommandOptions,
): Promise<CommandResult> {
  const { timeoutMs, maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES, onOutput, ...command } = options
  const child = await environment.spawn(command)
  using termination = terminateOn({ timeoutMs, signal: command.signal }, reason => {
    // `spawn` has the signal too, and kills by itself.
    if (reason === 'timeout') child.kill()
  })
  const [out, error, { exitCode }] = await Promise.all([
    collect(child.stdout, maxOutputBytes, chunk => onOutput?.('stdout', chunk)),
    collect(child.stderr, maxOutputBytes, chunk => onOutput?.('stderr', chunk)),
    child.exited,
  ])
  if (termination.reason === 'abort') command.signal?.throwIfAborted()
  const printed = { stdout: out.text, stderr: error.text, truncated: out.isCut || error.isCut }
  if (termination.reason !== 'timeout') return { ...printed, exitCode }
  throw new ApiError('command_timeout', `The command did not end within ${timeoutMs} ms and was killed.`, printed)
}

async function collect(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
  onChunk: (chunk: Uint8Array) => void | Promise<void>,
): Promise<{ text: string; isCut: boolean }> {
  const chunks: Uint8Array[] = []
  let kept = 0
  let isCut = false
  await readEach(stream, async chunk => {
    await onChunk(chunk)
    const room = maxBytes - kept
    if (chunk.byteLength > room) isCut = true
    if (room > 0) chunks.push(chunk.subarray(0, room))
    kept += Math.min(room, chunk.byteLength)
  })
  return { text: Buffer.concat(chunks).toString('utf8'), isCut }
}
