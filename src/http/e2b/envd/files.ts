import { posix } from 'node:path'
import { downloadFile } from '../../../core/sandboxes/download.ts'
import { useSandbox } from '../../../core/sandboxes/use-sandbox.ts'
import { ApiError } from '../../../errors.ts'
import type { EnvironmentFiles } from '../../../plugin-api/index.ts'
import { movingBody } from '../../../read/bytes.ts'
import { objectOf } from '../../../read/json.ts'
import { readJson } from '../../body.ts'
import { assertRoom } from './filesystem.ts'
import { readFiles } from './form.ts'
import { metadataOf } from './metadata.ts'
import type { Target } from './target.ts'
import { findUser, resolvePath, type SandboxUser } from './user.ts'

/**
 * How much of a file is kept in memory. A file that is no longer than this is written in one piece, which costs less, and is sent
 * with its length.
 */
const SHORT_BYTES = 256 * 1024

const wrong = (field: string, what: string) => new ApiError('invalid_request', `${field}: ${what}`, { field })

/** Works with a sandbox's files for the user that the query names. */
async function withUser<Result>(
  { runtime, caller, sandboxId }: Target,
  name: string | null,
  act: (files: EnvironmentFiles, user: SandboxUser) => Promise<Result>,
): Promise<Result> {
  using use = await useSandbox(runtime, caller, sandboxId)
  const { files } = use.environment
  return await act(files, await findUser(files, name || undefined))
}

const pathOf = (path: string | null, user: SandboxUser): string => {
  if (!path) throw wrong('path', 'required')
  return resolvePath(user, path)
}

/**
 * Returns the bytes of a file, compressed when the client accepts nothing else. Throws file_not_found, and invalid_request for a
 * directory.
 */
export async function download(target: Target, request: Request): Promise<Response> {
  const { runtime, caller, sandboxId } = target
  const { searchParams } = new URL(request.url)
  const find = async (_: EnvironmentFiles, user: SandboxUser) => pathOf(searchParams.get('path'), user)
  const path = await withUser(target, searchParams.get('username'), find)
  const headers = {
    'content-type': 'application/octet-stream',
    'content-disposition': `inline; filename*=UTF-8''${encodeURIComponent(posix.basename(path))}`,
    'x-content-type-options': 'nosniff',
    vary: 'accept-encoding',
  }
  const body = await shortOr(await downloadFile(runtime, caller, sandboxId, path))
  // The client looks at the length to see that the file is empty.
  const isPacked = wantsGzip(request) && (!(body instanceof Uint8Array) || body.byteLength > 0)
  const encoded = { ...headers, ...(isPacked && { 'content-encoding': 'gzip' }) }
  if (body instanceof Uint8Array) {
    const bytes = isPacked ? Bun.gzipSync(body) : body
    return new Response(bytes, { headers: { ...encoded, 'content-length': String(bytes.byteLength) } })
  }
  // Bun sends no length with a stream.
  return new Response(isPacked ? body.pipeThrough(new CompressionStream('gzip') as never) : body, { headers: encoded })
}

/** Most programs say that they accept gzip without any gain. So only a client that accepts nothing else gets it. */
function wantsGzip({ headers }: Request): boolean {
  const accepted = (headers.get('accept-encoding') ?? '').split(',').map(each => each.trim().toLowerCase())
  return accepted[0] === 'gzip' && accepted.slice(1).every(each => each === 'identity;q=0')
}

interface Reader {
  read(): Promise<{ value?: Uint8Array | undefined; done: boolean }>
  cancel(reason?: unknown): Promise<void>
}

/** Makes one stream of the pieces that were read already and the rest. */
const joined = (begun: Uint8Array[], reader: Reader): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = begun.shift()
        if (next) return controller.enqueue(next)
        const { value, done } = await reader.read()
        if (done || !value) controller.close()
        else controller.enqueue(value)
      },
      cancel: reason => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )

interface Written {
  name: string
  path: string
  type: 'file'
  metadata?: Readonly<Record<string, string>>
}

/** Writes the files of a request: the parts of a form, or its body. Throws invalid_request and disk_full. */
export async function upload(target: Target, request: Request): Promise<Response> {
  const { searchParams } = new URL(request.url)
  const attributes = metadataOf(request.headers)
  await assertRoom(target)
  const type = (request.headers.get('content-type') ?? '').toLowerCase()
  return await withUser(target, searchParams.get('username'), async (files, user) => {
    const written: Written[] = []
    const write = async (path: string, body: ReadableStream<Uint8Array>) => {
      if (written.some(each => each.path === path)) throw wrong('path', 'a form may have each path once')
      const details = { owner: user.name, ...(Object.keys(attributes).length > 0 && { attributes }) }
      written.push({
        name: posix.basename(path),
        path,
        type: 'file',
        ...(details.attributes && { metadata: details.attributes }),
      })
      await files.write(path, await shortOr(body), request.signal, details)
    }
    if (type.startsWith('multipart/form-data')) {
      const given = searchParams.get('path')
      await readFiles(request, (name, body) => write(pathOf(given || name, user), body))
      if (written.length === 0) throw wrong('body', 'has no file')
    } else {
      const path = pathOf(searchParams.get('path'), user)
      await write(path, plainBody(request))
    }
    return Response.json(written)
  })
}

/** The request's body, decompressed. Throws invalid_request for an unknown compression. */
function plainBody(request: Request): ReadableStream<Uint8Array> {
  const body = movingBody(request) ?? (new Blob([]).stream() as ReadableStream<Uint8Array>)
  const encoding = (request.headers.get('content-encoding') ?? 'identity').trim().toLowerCase()
  if (encoding === 'identity') return body
  if (encoding !== 'gzip') throw wrong('content-encoding', 'must be gzip or identity')
  const reader: Reader = (
    body.pipeThrough(new DecompressionStream('gzip') as never) as ReadableStream<Uint8Array>
  ).getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value, done } = await reader.read().catch(error => {
          throw error instanceof ApiError ? error : wrong('body', 'is not compressed with gzip')
        })
        if (done || !value) controller.close()
        else controller.enqueue(value)
      },
      cancel: reason => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/** Returns the bytes of a short stream, or else the stream itself. */
async function shortOr(
  body: ReadableStream<Uint8Array>,
): Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>> {
  const reader = body.getReader()
  const begun: Uint8Array[] = []
  for (let bytes = 0; bytes <= SHORT_BYTES; ) {
    const { value, done } = await reader.read()
    if (done) return Buffer.concat(begun)
    begun.push(value)
    bytes += value.byteLength
  }
  return joined(begun, reader)
}

const MAX_SOURCES = 1000

/** Joins files into one, and removes them. */
export async function compose(target: Target, request: Request): Promise<Response> {
  const { destination, source_paths: sources, username } = objectOf(await readJson(request)) ?? {}
  if (typeof destination !== 'string') throw wrong('destination', 'required')
  if (
    !Array.isArray(sources) ||
    sources.length === 0 ||
    sources.length > MAX_SOURCES ||
    !sources.every(each => typeof each === 'string')
  )
    throw wrong('source_paths', `must be a list of 1 to ${MAX_SOURCES} paths`)
  await assertRoom(target)
  return await withUser(target, typeof username === 'string' ? username : null, async (files, user) => {
    const path = pathOf(destination, user)
    const paths = (sources as string[]).map(each => pathOf(each, user))
    await files.write(path, contentsOf(files, paths), request.signal, { owner: user.name })
    for (const each of new Set(paths)) if (each !== path) await files.remove(each)
    return Response.json({ name: posix.basename(path), path, type: 'file' } satisfies Written)
  })
}

function contentsOf(files: EnvironmentFiles, paths: readonly string[]): ReadableStream<Uint8Array> {
  const left = [...paths]
  let reader: Reader | undefined
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const next = reader ? await reader.read() : undefined
          if (next && !next.done) return controller.enqueue(next.value)
          const path = left.shift()
          if (path === undefined) return controller.close()
          reader = (await files.read(path)).body.getReader()
        }
      },
      cancel: reason => reader?.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
