import type { EnvironmentFiles } from '../../plugin-api/index.ts'
import { type Call, lanes } from '../wire/call.ts'
import type { Channel } from '../wire/channel.ts'
import type { GuestRequest } from '../wire/requests.ts'
import { fileInfoOf, fileInfosOf, replyOf, resultOf, sizeOf } from '../wire/results.ts'
import { chunksUntil } from './chunks-until.ts'
import { closeOnAbort, collect } from './read-answer.ts'

const MAX_LISTING_BYTES = 8 * 1024 * 1024

/** File operations as calls to a guest, which carries them out inside. */
export function createRemoteFiles(channel: Channel): EnvironmentFiles {
  const ask = async (request: GuestRequest) => resultOf(await channel.open(request).result)

  return {
    async read(path, signal) {
      const call = channel.open({ op: 'read', path } satisfies GuestRequest)
      closeOnAbort(call, signal)
      const size = sizeOf(await replyOf(call))
      return { size, body: bodyOf(call) }
    },

    async write(path, body, signal) {
      const call = channel.open({ op: 'write', path } satisfies GuestRequest)
      closeOnAbort(call, signal)
      // Refused, or the disk is full, or the guest is gone: the rest is not wanted.
      const over = new AbortController()
      const end = () => over.abort()
      call.result.then(end, end)
      try {
        if (body instanceof Uint8Array) await call.send(lanes.up, body)
        else for await (const chunk of chunksUntil(body, over.signal)) await call.send(lanes.up, chunk)
      } catch (error) {
        call.close()
        throw error
      }
      call.end(lanes.up)
      const result = await call.result
      signal?.throwIfAborted()
      return sizeOf(resultOf(result))
    },

    async info(path) {
      const { info } = await ask({ op: 'info', path })
      return info ? fileInfoOf(info) : undefined
    },

    async list(path, depth = 1) {
      const call = channel.open({ op: 'list', path, depth } satisfies GuestRequest)
      const json = await collect(call, MAX_LISTING_BYTES)
      return fileInfosOf(json.toString('utf8'))
    },

    async makeDirectory(path) {
      return (await ask({ op: 'mkdir', path })).made === true
    },

    async rename(from, to) {
      await ask({ op: 'rename', from, to })
    },

    async remove(path) {
      await ask({ op: 'remove', path })
    },
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
