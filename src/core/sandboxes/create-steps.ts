import { ApiError } from '../../errors.ts'
import type { CreateProgress } from '../../plugin-api/index.ts'
import { createValueFilter, withoutValues } from '../agents/without-values.ts'

/** What happens while a sandbox is made. */
export type CreateStep =
  /** The next stage of the create has begun. `number` and `of` count set-up commands. */
  | { type: 'stage'; stage: 'environment' | 'archive' | 'files' }
  | { type: 'stage'; stage: 'setup'; number: number; of: number }
  /** Progress within the stage. The next report replaces it, so a reader may miss one. */
  | ({ type: 'progress' } & CreateProgress)
  /** Output of the stage's set-up command. */
  | { type: 'stdout' | 'stderr'; data: string }

/** Takes each step. A set-up command waits until its output was taken. */
export type OnCreateStep = (step: CreateStep) => void | Promise<void>

/** Passes on what a command prints as steps, with the names of variables in place of their values. */
export function outputSteps(onStep: OnCreateStep, variables: Readonly<Record<string, string>>) {
  const create = () => ({ decoder: new TextDecoder(), filter: createValueFilter(variables) })
  const streams = { stdout: create(), stderr: create() }
  const pass = async (type: 'stdout' | 'stderr', data: string) => {
    if (data) await onStep({ type, data })
  }
  return {
    onOutput(type: 'stdout' | 'stderr', chunk: Uint8Array) {
      const { decoder, filter } = streams[type]
      return pass(type, filter.push(decoder.decode(chunk, { stream: true })))
    },
    async end() {
      for (const type of ['stdout', 'stderr'] as const) {
        const { decoder, filter } = streams[type]
        await pass(type, filter.push(decoder.decode()) + filter.end())
      }
    },
  }
}

/** The failure of a set-up with the names of variables in place of their values. */
export const withoutSecrets = (error: unknown, variables: Readonly<Record<string, string>>): unknown =>
  error instanceof ApiError && error.code === 'setup_failed'
    ? new ApiError(error.code, withoutValues(error.message, variables))
    : error

/** Counts the bytes of a body that is read. */
export function countingBytes(
  body: ReadableStream<Uint8Array>,
  onBytes: (done: number) => void,
): ReadableStream<Uint8Array> {
  let done = 0
  return body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(piece, controller) {
        done += piece.byteLength
        onBytes(done)
        controller.enqueue(piece)
      },
    }),
  )
}
