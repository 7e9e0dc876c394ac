import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { Elysia } from 'elysia'
import { bounds, excerpt } from '../../bounds.ts'
import type { Runtime } from '../../core/runtime.ts'
import { downloadDirectory, downloadFile } from '../../core/sandboxes/download.ts'
import { useSandbox } from '../../core/sandboxes/use-sandbox.ts'
import { ApiError } from '../../errors.ts'
import type { EnvironmentFiles } from '../../plugin-api/index.ts'
import { movingBody, readBytes } from '../../read/bytes.ts'
import { json, readJson } from '../body.ts'
import { getCaller } from '../caller.ts'
import { AbsolutePath, FileContents, isAbsolutePath, SandboxParams } from '../schema.ts'

const PathQuery = Type.Object({ path: AbsolutePath })

const MaybeRaw = Type.Union([Type.Literal('blob'), Type.Literal('stream'), Type.Literal('text')])

const ReadQuery = Type.Object({
  path: AbsolutePath,
  format: Type.Optional(Type.Union([...MaybeRaw.anyOf, Type.Literal('tar')])),
})

const WriteQuery = Type.Object({ path: Type.Optional(AbsolutePath), format: Type.Optional(MaybeRaw) })

const ListQuery = Type.Object({
  path: AbsolutePath,
  depth: Type.Optional(Type.String({ pattern: '^[1-9][0-9]?$', errorMessage: 'must be a whole number from 1 to 99' })),
})

const Rename = Type.Object({ oldPath: AbsolutePath, newPath: AbsolutePath })

/** The three forms of body that clients send. */
const WriteBody = Type.Union([
  Type.Object({
    files: Type.Array(Type.Object({ path: Type.String(), content: Type.String() }), { maxItems: bounds.files }),
  }),
  Type.Object({ files: FileContents }),
  Type.Object({ path: Type.String(), content: Type.String(), files: Type.Optional(Type.Null()) }),
])

export const fileRoutes = (runtime: Runtime) => {
  const useFiles = async (request: Request, sandboxId: string) => {
    const use = await useSandbox(runtime, getCaller(request), sandboxId)
    return { ...use, files: use.environment.files }
  }

  return (
    new Elysia({ prefix: '/v1/sandboxes/:sandboxId/files' })
      .get(
        '/',
        async ({ request, params: { sandboxId }, query: { path, format = 'text' } }) => {
          if (format === 'tar') {
            const archive = await downloadDirectory(runtime, getCaller(request), sandboxId, path)
            return raw(archive, 'application/x-tar')
          }
          if (format !== 'text') return raw(await downloadFile(runtime, getCaller(request), sandboxId, path))
          using use = await useFiles(request, sandboxId)
          return { path, content: await readText(use.files, path) }
        },
        { params: SandboxParams, query: ReadQuery },
      )
      // The body is read here and not by Elysia: it may be raw bytes of any size.
      .post(
        '/',
        async ({ request, params: { sandboxId }, query: { path, format = 'text' } }) => {
          await runtime.diskSpace.assertEnough()
          runtime.teamLimits.assertRoom(getCaller(request).teamId, 'disk')
          if (format === 'text') {
            const wanted = parseEntries(await readJson(request))
            using use = await useFiles(request, sandboxId)
            return { files: await writeAll(use.files, wanted) }
          }
          if (!path) throw new ApiError('invalid_request', 'path: required', { field: 'path' })
          using use = await useFiles(request, sandboxId)
          const size = await use.files.write(path, movingBody(request) ?? new Uint8Array(), request.signal)
          return { files: [{ path, size }] }
        },
        { params: SandboxParams, query: WriteQuery, parse: 'none' },
      )
      .delete(
        '/',
        async ({ request, params: { sandboxId }, query: { path }, status }) => {
          using use = await useFiles(request, sandboxId)
          await use.files.remove(path)
          return status(204, undefined)
        },
        { params: SandboxParams, query: PathQuery },
      )
      .get(
        '/list',
        async ({ request, params: { sandboxId }, query: { path, depth = '1' } }) => {
          using use = await useFiles(request, sandboxId)
          return await use.files.list(path, Number(depth))
        },
        { params: SandboxParams, query: ListQuery },
      )
      .get(
        '/info',
        async ({ request, params: { sandboxId }, query: { path } }) => {
          using use = await useFiles(request, sandboxId)
          const info = await use.files.info(path)
          if (!info) throw new ApiError('file_not_found', `No such file: ${excerpt(path)}`)
          return info
        },
        { params: SandboxParams, query: PathQuery },
      )
      .get(
        '/exists',
        async ({ request, params: { sandboxId }, query: { path } }) => {
          using use = await useFiles(request, sandboxId)
          return Response.json((await use.files.info(path)) !== undefined)
        },
        { params: SandboxParams, query: PathQuery },
      )
      .post(
        '/mkdir',
        async ({ request, params: { sandboxId }, body: { path } }) => {
          using use = await useFiles(request, sandboxId)
          await runtime.diskSpace.assertEnough()
          runtime.teamLimits.assertRoom(getCaller(request).teamId, 'disk')
          return Response.json(await use.files.makeDirectory(path))
        },
        { params: SandboxParams, ...json(PathQuery) },
      )
      .post(
        '/rename',
        async ({ request, params: { sandboxId }, body: { oldPath, newPath } }) => {
          using use = await useFiles(request, sandboxId)
          await use.files.rename(oldPath, newPath)
          return await use.files.info(newPath)
        },
        { params: SandboxParams, ...json(Rename) },
      )
  )
}

/** Throws payload_too_large for a file that must be read raw. */
async function readText(files: EnvironmentFiles, path: string): Promise<string> {
  const { size, body } = await files.read(path)
  // Files in /proc have a size of 0, so the bytes are counted too.
  const bytes = size > bounds.bodyBytes ? await body.cancel() : await readBytes(body, bounds.bodyBytes)
  if (bytes) return bytes.toString('utf8')
  throw new ApiError(
    'payload_too_large',
    `The file has more than ${bounds.bodyBytes} bytes: read it with format=stream.`,
  )
}

const raw = (body: ReadableStream<Uint8Array>, type = 'application/octet-stream'): Response =>
  new Response(body, { headers: { 'content-type': type, 'x-content-type-options': 'nosniff' } })

async function writeAll(
  files: EnvironmentFiles,
  entries: readonly { path: string; content: string }[],
): Promise<{ path: string; size: number }[]> {
  const written = []
  for (const { path, content } of entries) written.push({ path, size: await files.write(path, Buffer.from(content)) })
  return written
}

function parseEntries(body: unknown): { path: string; content: string }[] {
  if (!Value.Check(WriteBody, body)) {
    const forms = '{files: [{path, content}]}, {files: {path: content}} or {path, content}'
    throw new ApiError('invalid_request', `files: wants ${forms}, up to ${bounds.files} files`, { field: 'files' })
  }
  const entries = listEntries(body)
  for (const { path } of entries) {
    if (!isAbsolutePath(path))
      throw new ApiError('invalid_request', 'path: must be an absolute path, as /home/user/file', { field: 'path' })
  }
  return entries
}

function listEntries(body: Static<typeof WriteBody>): { path: string; content: string }[] {
  if (!body.files) return [body]
  if (Array.isArray(body.files)) return body.files
  return Object.entries(body.files).map(([path, content]) => ({ path, content }))
}
