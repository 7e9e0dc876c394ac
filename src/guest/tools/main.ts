import { appendFileSync, statSync, writeSync } from 'node:fs'
import { messageOf } from '../../errors.ts'
import { codeOf } from '../../read/error-code.ts'
import { keepTools } from './keeper.ts'
import { serveMcp } from './mcp.ts'
import { serveRunner } from './runner.ts'

const DEFAULT_CALL_TIMEOUT_MS = 300_000
const MAX_LOG_BYTES = 256 * 1024
const FULL_PIPE_POLL_MS = 5

/**
 * `BUNDLE [--log FILE]` serves an agent's own tools over stdin and stdout, `BUNDLE --describe` prints what the bundle says
 * of its agent as JSON. Runs inside a sandbox only. Resolves to the exit code.
 */
export async function serveTools([path = '', ...flags]: readonly string[]): Promise<number> {
  if (flags.includes('--runner')) {
    await serveRunner(path)
    return await new Promise<never>(() => {})
  }
  const log = flags[flags.indexOf('--log') + 1]
  const keeper = keepTools({
    path,
    timeoutMs: Number(process.env.THREADBOX_TOOL_TIMEOUT_MS) || DEFAULT_CALL_TIMEOUT_MS,
    onOutput: flags.includes('--log') && log ? chunk => append(log, chunk) : chunk => process.stderr.write(chunk),
  })
  try {
    if (flags.includes('--describe')) await print(JSON.stringify((await keeper.load()).description))
    else await serveMcp(keeper, process.stdin, line => void process.stdout.write(line))
    return 0
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`)
    return 1
  } finally {
    keeper.close()
  }
}

/** Resolves when a pipe has all of it. A stream's own word for that comes too early: the process ends with the rest. */
async function print(text: string): Promise<void> {
  const bytes = Buffer.from(text)
  for (let offset = 0; offset < bytes.byteLength; ) {
    try {
      offset += writeSync(1, bytes, offset)
    } catch (error) {
      if (codeOf(error) !== 'EAGAIN') throw error
      await new Promise(resolve => setTimeout(resolve, FULL_PIPE_POLL_MS))
    }
  }
}

/** Whoever reads the file takes it away; until then it does not grow for ever. */
function append(file: string, chunk: Uint8Array): void {
  try {
    if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) < MAX_LOG_BYTES) appendFileSync(file, chunk)
  } catch {
    // The sandbox is full: tools go on without a log.
  }
}
