import { createWriteStream, existsSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { RpcError } from './envd-processes.ts'

export function createFiles() {
  return {
    download(path: string): Response {
      const found = statSync(path, { throwIfNoEntry: false })
      if (!found) return Response.json({ message: `path '${path}' does not exist` }, { status: 404 })
      if (found.isDirectory()) return Response.json({ message: `path '${path}' is a directory` }, { status: 400 })
      return new Response(Bun.file(path))
    },

    /** The body is multipart with one part `file`; it is written as it comes. */
    async upload(path: string, request: Request): Promise<Response> {
      if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
        return Response.json({ message: `path is a directory: ${path}` }, { status: 400 })
      }
      mkdirSync(dirname(path), { recursive: true })
      const [, boundary = ''] = /boundary="?([^";]+)/.exec(request.headers.get('content-type') ?? '') ?? []
      const sink = createWriteStream(path, { mode: 0o666 })
      const failed = new Promise<Error>(resolve => sink.once('error', resolve))
      try {
        for await (const piece of partOf(request.body, boundary)) {
          if (!sink.write(piece)) {
            const problem = await Promise.race([
              failed,
              new Promise<undefined>(resolve => sink.once('drain', () => resolve(undefined))),
            ])
            if (problem) throw problem
          }
        }
        const problem = await Promise.race([
          failed,
          new Promise<undefined>(resolve => sink.end(() => resolve(undefined))),
        ])
        if (problem) throw problem
      } catch (error) {
        sink.destroy()
        const isFull = (error as NodeJS.ErrnoException).code === 'ENOSPC'
        return Response.json({ message: String(error) }, { status: isFull ? 507 : 500 })
      }
      return Response.json([{ path, name: path.split('/').at(-1), type: 'file' }])
    },

    async unary(method: string, body: any): Promise<object> {
      const { path, source, destination } = body
      switch (method) {
        case 'MakeDir': {
          const found = statSync(path, { throwIfNoEntry: false })
          if (found?.isDirectory()) throw new RpcError('already_exists', `directory already exists: ${path}`)
          if (found) throw new RpcError('invalid_argument', `path already exists but it is not a directory: ${path}`)
          mkdirSync(path, { recursive: true })
          return {}
        }
        case 'Move':
          mkdirSync(dirname(destination), { recursive: true })
          if (!existsSync(source)) throw new RpcError('not_found', 'source file not found')
          renameSync(source, destination)
          return {}
        case 'Remove':
          rmSync(path, { recursive: true, force: true })
          return {}
        default:
          throw new RpcError('unimplemented', method)
      }
    },
  }
}

/** The bytes of the first part. Nothing is held but what may be the boundary. */
async function* partOf(body: ReadableStream<Uint8Array> | null, boundary: string): AsyncGenerator<Buffer> {
  const end = Buffer.from(`\r\n--${boundary}`)
  let held: Buffer = Buffer.alloc(0)
  let isInside = false
  for await (const chunk of body ?? []) {
    held =
      held.byteLength > 0 ? Buffer.concat([held, chunk]) : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    if (!isInside) {
      const head = held.indexOf('\r\n\r\n')
      if (head < 0) continue
      isInside = true
      held = held.subarray(head + 4)
    }
    const last = held.indexOf(end)
    if (last >= 0) {
      yield held.subarray(0, last)
      return
    }
    const sure = held.byteLength - end.byteLength
    if (sure <= 0) continue
    yield held.subarray(0, sure)
    held = Buffer.from(held.subarray(sure))
  }
  throw new Error('the body is cut short')
}
