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
