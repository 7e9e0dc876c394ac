import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Runtime } from '../../core/runtime.ts'
import { type Command, prepareCommand } from '../../core/sandboxes/exec.ts'
import { DONE, eventStreamHeaders, OPEN } from '../../stream/frame.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'
import { errorEvent } from '../failure.ts'
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
      const prepared = await prepareCommand(runtime, getCaller(request), sandboxId, body)
      if (request.headers.get('accept')?.includes('text/event-stream')) return stream(prepared)
      using command = prepared
      return await command.run({ signal: request.signal })
    },
    { params: SandboxParams, ...json(Exec) },
  )

/** Answers with the output as it comes, then the exit or an error. When the client goes away, the command is aborted. */
function stream(command: Command): Response {
  const abort = new AbortController()
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  writer.closed.catch(() => abort.abort(new Error('the client went away')))
  // A write fails when the client has gone, and then nobody reads the rest.
  writeOutput(command, writer, abort.signal).catch(() => {})
  return new Response(readable, { headers: eventStreamHeaders })
}

async function writeOutput(
  command: Command,
  writer: WritableStreamDefaultWriter<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  using use = command
  const encoder = new TextEncoder()
  const send = (event: object) => writer.write(encoder.encode(`data: ${JSON.stringify(event)}\n\n`))
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  try {
    await writer.write(OPEN)
    const { exitCode } = await use.run({
      maxOutputBytes: 0,
      signal,
      async onOutput(type, chunk) {
        const data = decoders[type].decode(chunk, { stream: true })
        if (data) await send({ type, data })
      },
    })
    await send({ type: 'exit', exitCode })
  } catch (error) {
    await send(errorEvent(error, 'The command could not be run to its end.'))
  }
  await writer.write(DONE)
  await writer.close()
}
