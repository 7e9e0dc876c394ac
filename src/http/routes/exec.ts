import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Runtime } from '../../core/runtime.ts'
import { type Command, prepareCommand } from '../../core/sandboxes/exec.ts'
import { ApiError } from '../../errors.ts'
import { DONE, eventStreamHeaders, OPEN } from '../../stream/frame.ts'
import { json } from '../body.ts'
import { callerOf } from '../caller.ts'
import { AbsolutePath, CommandLine, SandboxParams, Variables } from '../schema.ts'

const MAX_TIMEOUT_MS = 600_000

const Exec = Type.Object({
  command: CommandLine,
  cwd: Type.Optional(AbsolutePath),
  envs: Type.Optional(Variables),
  timeoutMs: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_TIMEOUT_MS })),
})

export const execRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/sandboxes/:sandboxId/exec' }).post(
    '/',
    async ({ request, params: { sandboxId }, body }) => {
      const prepared = await prepareCommand(runtime, callerOf(request), sandboxId, body)
      if (request.headers.get('accept')?.includes('text/event-stream')) return stream(prepared)
      using command = prepared
      return await command.run({ signal: request.signal })
    },
    { params: SandboxParams, ...json(Exec) },
  )

/** The output as it comes, then the exit or the error. A client that goes away ends the command. */
function stream(command: Command): Response {
  const abort = new AbortController()
  const pipe = new TransformStream<Uint8Array, Uint8Array>()
  const writer = pipe.writable.getWriter()
  const encoder = new TextEncoder()
  const send = (event: object) => writer.write(encoder.encode(`data: ${JSON.stringify(event)}\n\n`))
  writer.closed.catch(() => abort.abort(new Error('the client went away')))

  const run = async () => {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
    await writer.write(OPEN)
    const { exitCode } = await command.run({
      maxOutputBytes: 0,
      signal: abort.signal,
      async onOutput(type, chunk) {
        const data = decoders[type].decode(chunk, { stream: true })
        if (data) await send({ type, data })
      },
    })
    await send({ type: 'exit', exitCode })
  }
  run()
    .catch(async error => {
      const { code, message } =
        error instanceof ApiError ? error : new ApiError('internal_error', 'The command was lost.')
      await send({ type: 'error', code, message })
    })
    .then(() => writer.write(DONE))
    .then(() => writer.close())
    // The client went away: there is nobody to tell.
    .catch(() => {})
    .finally(() => command[Symbol.dispose]())
  return new Response(pipe.readable, { headers: eventStreamHeaders })
}
