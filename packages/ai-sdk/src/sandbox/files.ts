import { extractLines, type Experimental_SandboxSession as SandboxSession } from '@ai-sdk/provider-utils'
import { isCode } from '../error.ts'
import { decode, encode } from './encodings.ts'
import type { Place } from './place.ts'

type Files = Pick<
  SandboxSession,
  'readFile' | 'readBinaryFile' | 'readTextFile' | 'writeFile' | 'writeBinaryFile' | 'writeTextFile'
>

/** Files of any size, as streams. A relative path starts at the default working directory. */
export function createFiles(place: Place): Files {
  const address = (path: string) => `${place.path}/files?format=stream&path=${encodeURIComponent(place.absolute(path))}`

  /** Undefined when there is no such file. */
  const open = async (path: string, signal?: AbortSignal) => {
    signal?.throwIfAborted()
    try {
      return await place.server.request('GET', address(path), { signal })
    } catch (error) {
      if (isCode(error, 'file_not_found')) return undefined
      throw error
    }
  }

  const read = async (path: string, signal?: AbortSignal) => {
    const response = await open(path, signal)
    return response ? new Uint8Array(await response.arrayBuffer()) : null
  }

  const write = async (
    path: string,
    bytes: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
    signal?: AbortSignal,
  ) => {
    signal?.throwIfAborted()
    await place.server.request('POST', address(path), { bytes, signal })
  }

  return {
    async readFile({ path, abortSignal }) {
      const response = await open(path, abortSignal)
      return response ? (response.body ?? new Blob().stream()) : null
    },
    async readBinaryFile({ path, abortSignal }) {
      return await read(path, abortSignal)
    },
    async readTextFile({ path, encoding, startLine, endLine, abortSignal }) {
      const bytes = await read(path, abortSignal)
      if (!bytes) return null
      return extractLines({
        text: decode(bytes, encoding),
        ...(startLine !== undefined && { startLine }),
        ...(endLine !== undefined && { endLine }),
      })
    },
    async writeFile({ path, content, abortSignal }) {
      await write(path, content, abortSignal)
    },
    async writeBinaryFile({ path, content, abortSignal }) {
      await write(path, Uint8Array.from(content), abortSignal)
    },
    async writeTextFile({ path, content, encoding, abortSignal }) {
      await write(path, encode(content, encoding), abortSignal)
    },
  }
}
