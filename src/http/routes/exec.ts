import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Runtime } from '../../core/runtime.ts'
import { type Command, prepareCommand } from '../../core/sandboxes/exec.ts'
import { eventStreamHeaders } from '../../stream/frame.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'
import { takeFlow } from '../context.ts'
import { wantsEvents } from '../event-answer.ts'
import { frameOf, writeEventBody } from '../event-body.ts'
import { createTextFrames, createTexts, type OutputText } from '../output-text.ts'
import { AbsolutePath, CommandLine, SandboxParams, Variables } from '../schema.ts'
import { type BodyWriter, writtenBody } from '../written-body.ts'

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
      if (wantsEvents(request)) {
        const body = writtenBody(takeFlow(request), to => writeOutput(prepared, to))
        return new Response(body, { headers: eventStreamHeaders })
      }
      using command = prepared
      return await command.run({ signal: request.signal })
    },
    { params: SandboxParams, ...json(Exec) },
  )

/** Writes the output as it comes, then the exit or an error. When the client goes away, the command is aborted. */
async function writeOutput(command: Command, to: BodyWriter): Promise<void> {
  using use = command
  const texts = createTexts()
  const frame = createTextFrames()
  const write = ({ type, text }: OutputText) => to.write(frame(`data: {"type":"${type}","data":"`, text))
  await writeEventBody(to, 'The command could not be run to its end.', async () => {
    const { exitCode } = await use.run({
      maxOutputBytes: 0,
      signal: to.signal,
      async onOutput(type, chunk) {
        await to.room()
        const text = texts.add(type, 0, chunk)
        if (text) write(text)
      },
    })
    texts.rest().forEach(write)
    to.write(frameOf({ type: 'exit', exitCode }))
  })
}
