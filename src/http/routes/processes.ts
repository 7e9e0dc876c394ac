import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { assertScope } from '../../core/access/scopes.ts'
import type { Runtime } from '../../core/runtime.ts'
import {
  followOutput,
  listProcesses,
  parseSignal,
  removeProcess,
  startProcess,
  useProcesses,
} from '../../core/sandboxes/processes.ts'
import type { ProcessInfo } from '../../plugin-api/index.ts'
import { movingBody } from '../../read/bytes.ts'
import { eventStreamHeaders } from '../../stream/frame.ts'
import { json, readJsonAs } from '../body.ts'
import { getCaller } from '../caller.ts'
import { takeFlow } from '../context.ts'
import {
  AbsolutePath,
  Arguments,
  CommandLine,
  Flag,
  Offset,
  ProcessParams,
  SandboxParams,
  Variables,
} from '../schema.ts'
import { writtenBody } from '../written-body.ts'
import { writeProcessOutput } from './process-output.ts'

const Cells = Type.Integer({ minimum: 1, maximum: 9999 })
const Size = Type.Object({ columns: Cells, rows: Cells })
const DEFAULT_SIZE = { columns: 80, rows: 24 }

const Start = Type.Object({
  command: Type.Union([CommandLine, Arguments]),
  cwd: Type.Optional(AbsolutePath),
  envs: Type.Optional(Variables),
  pty: Type.Optional(Type.Union([Type.Boolean(), Size], { description: 'A terminal in place of pipes; 80 by 24.' })),
  stdin: Type.Optional(Type.Boolean({ description: 'Takes input, up to its end; a terminal always does.' })),
  name: Type.Optional(Type.String({ maxLength: bounds.id })),
  waitForReader: Type.Optional(
    Type.Union([Type.Boolean(), Type.Literal('attached')], {
      description: 'Loses no output: it waits until it is read; `attached`: only while a reader reads on.',
    }),
  ),
})

const OutputQuery = Type.Object({
  offset: Type.Optional(Offset),
  follow: Type.Optional(Flag),
  encoding: Type.Optional(Type.Union([Type.Literal('text'), Type.Literal('base64')])),
  hangup: Type.Optional(Flag),
})

/** How long a body may send nothing. It is a pipe to the process, and a person may type into it. */
const STDIN_STILL_MS = 15 * 60_000

const StdinQuery = Type.Object({ close: Type.Optional(Flag) })

const Stdin = Type.Object({
  data: Type.Optional(Type.String({ maxLength: bounds.bodyBytes })),
  encoding: Type.Optional(Type.Union([Type.Literal('text'), Type.Literal('base64')])),
  close: Type.Optional(Type.Boolean()),
})

const Signal = Type.Object({ signal: Type.String({ maxLength: 20, description: 'SIGTERM, or TERM.' }) })

/** Over 100 lines: it is a list of routes. */
export const processRoutes = (runtime: Runtime) => {
  const open = (request: Request, sandboxId: string) => useProcesses(runtime, getCaller(request), sandboxId)

  return (
    new Elysia({ prefix: '/v1/sandboxes/:sandboxId/processes' })
      .post(
        '/',
        async ({ request, params: { sandboxId }, body, status }) => {
          const { command, cwd, envs, pty, stdin, name, waitForReader = false } = body
          const info = await startProcess(runtime, getCaller(request), sandboxId, {
            command,
            stdin: stdin ? 'pipe' : 'ignore',
            waitForReader,
            ...(cwd !== undefined && { cwd }),
            ...(envs && { env: envs }),
            ...(pty && { pty: pty === true ? DEFAULT_SIZE : pty }),
            ...(name !== undefined && { name }),
          })
          return status(201, described(info))
        },
        { params: SandboxParams, ...json(Start) },
      )
      .get(
        '/',
        async ({ request, params: { sandboxId } }) => {
          using use = await open(request, sandboxId)
          const processes = await listProcesses(runtime, use)
          return { processes: processes.map(described) }
        },
        { params: SandboxParams },
      )
      .get(
        '/:pid',
        async ({ request, params: { sandboxId, pid } }) => {
          using use = await open(request, sandboxId)
          return described(await use.processes.get(Number(pid)))
        },
        { params: ProcessParams },
      )
      .get(
        '/:pid/output',
        async ({ request, params: { sandboxId, pid }, query: { offset, follow, encoding = 'text', hangup } }) => {
          // A reader that ends the process when it leaves needs more than the scope to read.
          if (hangup === 'true') assertScope(getCaller(request), ['sandboxes'])
          using use = await open(request, sandboxId)
          const { processes } = use
          await processes.get(Number(pid))
          const lastEventId = /^\d{1,15}$/.exec(request.headers.get('last-event-id') ?? '')?.[0]
          const held = use.hold()
          const body = writtenBody(takeFlow(request), async to => {
            using _ = held
            if (hangup === 'true') {
              // Removing fails when the process is gone already.
              to.signal.addEventListener('abort', () => void processes.remove(Number(pid)).catch(() => {}))
            }
            const events = followOutput(processes, Number(pid), {
              offset: Number(lastEventId ?? offset ?? 0),
              follow: follow !== 'false',
              signal: to.signal,
            })
            await writeProcessOutput(to, encoding, events)
          })
          return new Response(body, { headers: eventStreamHeaders })
        },
        { params: ProcessParams, query: OutputQuery },
      )
      // The body is read here and not by Elysia: raw bytes go to the process as they come.
      .post(
        '/:pid/stdin',
        async ({ request, params: { sandboxId, pid }, query, status }) => {
          using use = await open(request, sandboxId)
          const { processes } = use
          const write = (bytes: Uint8Array) => processes.write(Number(pid), bytes, request.signal)
          let close = query.close === 'true'
          if (request.headers.get('content-type')?.includes('application/json')) {
            const { data = '', encoding = 'text', ...rest } = await readJsonAs(Stdin, request)
            close ||= rest.close === true
            await write(Buffer.from(data, encoding === 'text' ? 'utf8' : encoding))
          } else {
            for await (const chunk of movingBody(request, STDIN_STILL_MS) ?? []) await write(chunk)
          }
          if (close) await processes.closeStdin(Number(pid))
          return status(204, undefined)
        },
        { params: ProcessParams, query: StdinQuery, parse: 'none' },
      )
      .post(
        '/:pid/signal',
        async ({ request, params: { sandboxId, pid }, body: { signal }, status }) => {
          using use = await open(request, sandboxId)
          await use.processes.signal(Number(pid), parseSignal(signal))
          return status(204, undefined)
        },
        { params: ProcessParams, ...json(Signal) },
      )
      .post(
        '/:pid/resize',
        async ({ request, params: { sandboxId, pid }, body: { columns, rows }, status }) => {
          using use = await open(request, sandboxId)
          await use.processes.resize(Number(pid), { columns, rows })
          return status(204, undefined)
        },
        { params: ProcessParams, ...json(Size) },
      )
      .delete(
        '/:pid',
        async ({ request, params: { sandboxId, pid }, status }) => {
          using use = await open(request, sandboxId)
          await removeProcess(runtime, use, Number(pid))
          return status(204, undefined)
        },
        { params: ProcessParams },
      )
  )
}

const described = ({ exit, endedAt, name, pty, ...info }: ProcessInfo) => ({
  ...info,
  name: name ?? null,
  pty: pty ?? null,
  status: exit ? 'exited' : 'running',
  exitCode: exit?.exitCode ?? null,
  signal: exit?.signal ?? null,
  endedAt: endedAt ?? null,
})
