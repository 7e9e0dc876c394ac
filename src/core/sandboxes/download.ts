import { posix } from 'node:path'
import { excerpt } from '../../bounds.ts'
import { ApiError } from '../../errors.ts'
import type { Environment } from '../../plugin-api/index.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { useSandbox } from './use-sandbox.ts'

/**
 * A file's bytes, at the pace of their reader. The sandbox is in use until they end, break or are cancelled: one of the
 * three has to come. Throws file_not_found.
 */
export async function downloadFile(
  runtime: Runtime,
  caller: Caller,
  sandboxId: string,
  path: string,
): Promise<ReadableStream<Uint8Array>> {
  using use = await useSandbox(runtime, caller, sandboxId)
  const { body } = await use.environment.files.read(path)
  return whileHeld(body, use.hold())
}

/**
 * Streams a directory as a tar archive, which the sandbox's own tar makes at its reader's pace. Of the root, /proc, /sys and /dev
 * come empty, because the kernel makes up their contents as they are read. The stream breaks when tar fails on the way. The
 * sandbox is in use until the stream ends, breaks or is cancelled. Throws file_not_found, and invalid_request for a file.
 */
export async function downloadDirectory(
  runtime: Runtime,
  caller: Caller,
  sandboxId: string,
  path: string,
): Promise<ReadableStream<Uint8Array>> {
  using use = await useSandbox(runtime, caller, sandboxId)
  const info = await use.environment.files.info(path)
  if (!info) throw new ApiError('file_not_found', `No such directory: ${excerpt(path)}`)
  if (info.type !== 'dir') throw new ApiError('invalid_request', 'path: not a directory', { field: 'path' })
  return whileHeld(await startTar(use.environment, path), use.hold())
}

async function startTar(environment: Environment, path: string): Promise<ReadableStream<Uint8Array>> {
  const left = posix.resolve('/', path) === '/' ? ['proc', 'sys', 'dev'].map(name => `--exclude=./${name}/*`) : []
  const tar = await environment.spawn({ command: ['tar', '--create', '--file=-', ...left, '--directory', path, '.'] })
  void tar.stderr.pipeTo(new WritableStream()).catch(() => {})
  const reader = tar.stdout.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value, done } = await reader.read()
        if (!done) return controller.enqueue(value)
        const { exitCode } = await tar.exited
        if (exitCode !== 0) throw new ApiError('sandbox_unavailable', `tar ended with ${exitCode}.`)
        controller.close()
      },
      async cancel() {
        tar.kill()
        await tar.exited.catch(() => {})
      },
    },
    { highWaterMark: 0 },
  )
}

function whileHeld(body: ReadableStream<Uint8Array>, held: Disposable): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { value, done } = await reader.read()
          if (!done) return controller.enqueue(value)
        } catch (error) {
          held[Symbol.dispose]()
          throw error
        }
        held[Symbol.dispose]()
        controller.close()
      },
      async cancel(reason) {
        held[Symbol.dispose]()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
