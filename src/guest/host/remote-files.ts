import { ApiError } from '../../errors.ts'
import type { EnvironmentFiles, FileChange } from '../../plugin-api/index.ts'
import { lines } from '../../read/lines.ts'
import { type Call, lanes } from '../wire/call.ts'
import type { GuestRequest } from '../wire/requests.ts'
import { descriptorOf, fileChangeOf, fileInfoOf, fileInfosOf, replyOf, resultOf, sizeOf } from '../wire/results.ts'
import type { AskGuest } from './ask-guest.ts'
import { chunksUntil } from './chunks-until.ts'
import { readTaken, writeTaken } from './file-bytes.ts'
import type { GuestDescriptors } from './guest-descriptors.ts'
import { closeOnAbort, collect } from './read-answer.ts'
import { takeFile } from './taken-file.ts'

const MAX_LISTING_BYTES = 8 * 1024 * 1024

/** File operations as calls to a guest, which carries them out inside. */
export function createRemoteFiles(
  askGuest: AskGuest,
  { descriptors, keepsAttributes }: { descriptors: GuestDescriptors | undefined; keepsAttributes: boolean },
): Required<EnvironmentFiles> {
  const openRead = (path: string, signal: AbortSignal | undefined, asDescriptor: boolean) => {
    const call = askGuest({ op: 'read', path, ...(asDescriptor && { asDescriptor }) })
    closeOnAbort(call, signal)
    return call
  }
  const ask = async (request: GuestRequest) => resultOf(await askGuest(request).result)

  return {
    async read(path, signal) {
      if (descriptors) {
        const call = openRead(path, signal, true)
        const reply = await replyOf(call)
        const size = sizeOf(reply)
        const number = descriptorOf(reply)
        if (number === undefined) return { size, body: bodyOf(call) }
        const file = takeFile(descriptors, number)
        if (file) return { size, body: readTaken(file, call) }
        call.close()
      }
      const call = openRead(path, signal, false)
      return { size: sizeOf(await replyOf(call)), body: bodyOf(call) }
    },

    async write(path, body, signal, details = {}) {
      if (details.attributes && !keepsAttributes) throw cannotKeep()
      // A small file costs less in a frame.
      const from = body instanceof Uint8Array ? undefined : descriptors
      const call = askGuest({ op: 'write', path, ...details, ...(from && { asDescriptor: true }) })
      closeOnAbort(call, signal)
      // Refused, or the disk is full, or the guest is gone: the rest is not wanted.
      const over = new AbortController()
      const end = () => over.abort()
      call.result.then(end, end)
      try {
        if (body instanceof Uint8Array) await call.send(lanes.up, body)
        else {
          const chunks = chunksUntil(body, over.signal)
          const number = from && descriptorOf(await replyOf(call))
          const maxBytes = from?.maxFileBytes()
          const file = from && maxBytes !== undefined ? takeFile(from, number) : undefined
          if (file && maxBytes !== undefined) await writeTaken(file, call, chunks, maxBytes)
          else for await (const chunk of chunks) await call.send(lanes.up, chunk)
        }
      } catch (error) {
        call.close()
        // The file was refused before any of the body was read. A reader of the body would cancel it.
        if (!(body instanceof Uint8Array || body.locked)) await body.cancel(error).catch(() => {})
        throw error
      }
      call.end(lanes.up)
      const result = await call.result
      signal?.throwIfAborted()
      return sizeOf(resultOf(result))
    },

    async info(path, { details = false } = {}) {
      const { info } = await ask({ op: 'info', path, ...(details && { details }) })
      return info ? fileInfoOf(info) : undefined
    },

    async list(path, depth = 1, { details = false } = {}) {
      const call = askGuest({ op: 'list', path, depth, ...(details && { details }) })
      const json = await collect(call, MAX_LISTING_BYTES)
      return fileInfosOf(json.toString('utf8'))
    },

    async makeDirectory(path, { owner } = {}) {
      return (await ask({ op: 'mkdir', path, ...(owner !== undefined && { owner }) })).made === true
    },

    async rename(from, to) {
      await ask({ op: 'rename', from, to })
    },

    async remove(path) {
      await ask({ op: 'remove', path })
    },

    async watch(path, { isRecursive, signal }) {
      signal.throwIfAborted()
      const call = askGuest({ op: 'watch', path, isRecursive })
      closeOnAbort(call, signal)
      await replyOf(call)
      return changesOf(call)
    },
  }
}

const cannotKeep = () =>
  new ApiError(
    'invalid_request',
    'The sandbox runs since an earlier version of threadbox, which keeps no metadata of files.',
  )

/** A line may be a few times as long as a path. */
const MAX_CHANGE_CHARS = 64 * 1024

/** The call ends when a reader leaves the loop. */
async function* changesOf(call: Call): AsyncGenerator<FileChange[], void> {
  try {
    for await (const line of lines(call.readable(lanes.down), MAX_CHANGE_CHARS)) yield [fileChangeOf(line)]
    resultOf(await call.result)
  } finally {
    call.close()
  }
}

/** A file's bytes. A reader that has had enough ends the call. */
const bodyOf = (call: Call): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const chunk = await call.read(lanes.down)
        if (chunk) return controller.enqueue(chunk)
        resultOf(await call.result)
        controller.close()
      },
      cancel: () => call.close(),
    },
    { highWaterMark: 0 },
  )
