import { beforeTimeout } from '../../async/timeout.ts'
import { runCommand } from '../../environment/run-command.ts'
import { ApiError } from '../../errors.ts'
import type { Environment } from '../../plugin-api/index.ts'
import type { Subject } from '../subject.ts'

const WITHIN_MS = 15_000

/**
 * Makes a new directory inside, runs a shell command in it, and resolves to its path. The command finds the host's directory in `$HOST`.
 */
export async function inNewDirectory({ environment, hostDirectory, signal }: Subject, line: string): Promise<string> {
  const place = `/tmp/selftest-${crypto.randomUUID()}`
  const command = `mkdir -p ${place} && cd ${place} && ${line}`
  const { exitCode, stderr } = await runCommand(environment, { command, env: { HOST: hostDirectory }, signal })
  if (exitCode !== 0) throw new Error(`the files could not be made: ${stderr.trim()}`)
  return place
}

/** How an operation ended: with a result, refused with a code, or not within its time. `endOf` rejects for any other failure. */
export type Ended<T> = { result: T } | { code: string } | { isLate: true }

export async function endOf<T>(work: Promise<T>): Promise<Ended<T>> {
  const ended = work.then(
    (result): Ended<T> => ({ result }),
    (error: unknown): Ended<T> => {
      if (error instanceof ApiError) return { code: error.code }
      throw error
    },
  )
  return await beforeTimeout(WITHIN_MS, ended, (): Ended<T> => ({ isLate: true }))
}

/** Reads the first bytes of a file by the file operations. The text is empty when they refuse. Rejects when they take too long. */
export async function readSome({ files }: Environment, path: string): Promise<string> {
  const ended = await endOf(files.read(path).then(({ body }) => firstOf(body)))
  if ('isLate' in ended) throw new Error(`reading ${path} does not come to an end`)
  return 'result' in ended ? ended.result : ''
}

async function firstOf(body: ReadableStream<Uint8Array>): Promise<string> {
  const reader = body.getReader()
  const { value } = await reader.read()
  await reader.cancel().catch(() => {})
  return Buffer.from(value ?? []).toString('utf8')
}
