import { type Static, Type } from '@sinclair/typebox'
import { bounds } from '../../../bounds.ts'
import { type JsonObject, objectsOf } from '../../../read/json.ts'
import { AbsolutePath, CommandLine, Variables } from '../../schema.ts'
import { askJson, assertDone, errorOf } from '../ask.ts'
import { createBoundedText } from '../bounded-text.ts'
import { eventsOf } from '../events.ts'
import { type Call, type Outcome, type Tool, tool } from '../tool.ts'
import { DEFAULT_CHARACTERS, MaxCharacters, Pid, SandboxId } from './fields.ts'

const Start = Type.Object({
  sandboxId: SandboxId,
  command: { ...CommandLine, description: 'For bash.' },
  cwd: Type.Optional(AbsolutePath),
  envs: Type.Optional({ ...Variables, description: 'Environment variables.' }),
  name: Type.Optional(Type.String({ maxLength: bounds.id, description: 'To know it by.' })),
})

const One = Type.Object({ sandboxId: SandboxId, pid: Pid })

const Output = Type.Object({
  ...One.properties,
  offset: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1e14, description: 'nextOffset of the read before; default 0.' }),
  ),
  waitMs: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 300_000, description: 'Waits so long for the process to end; default 0.' }),
  ),
  maxCharacters: Type.Optional(MaxCharacters),
})

const Show = Type.Object({
  sandboxId: SandboxId,
  port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  expiresIn: Type.Optional(Type.String({ maxLength: 20, description: 'As 30m or 2h; default 1h.' })),
})

export const processTools: readonly Tool[] = [
  tool({
    name: 'start_process',
    title: 'Start a process',
    description: 'Starts a command in a sandbox that goes on by itself, as a server. Gives its pid at once.',
    input: Start,
    isDestructive: true,
    async run({ sandboxId, ...body }, { ask, signal }) {
      const answer = await askJson(ask, { method: 'POST', path: `/v1/sandboxes/${sandboxId}/processes`, body, signal })
      return { text: `Process ${answer?.pid} has begun.`, structured: described(answer ?? {}) }
    },
  }),
  tool({
    name: 'list_processes',
    title: 'List processes',
    description: 'Lists the processes that start_process has begun in a sandbox.',
    input: Type.Object({ sandboxId: SandboxId }),
    isReadOnly: true,
    async run({ sandboxId }, { ask, signal }) {
      const answer = await askJson(ask, { method: 'GET', path: `/v1/sandboxes/${sandboxId}/processes`, signal })
      const processes = objectsOf(answer?.processes).map(described)
      const lines = processes.map(each => `${each.pid} ${each.status} ${each.name ?? ''} ${each.command}`)
      return { text: lines.join('\n') || 'No processes.', structured: { processes } }
    },
  }),
  tool({
    name: 'read_process_output',
    title: 'Read output of a process',
    description: 'Gives what a process printed, its last MiB at most, and whether it has ended.',
    input: Output,
    isReadOnly: true,
    isLong: true,
    run: readOutput,
  }),
  tool({
    name: 'stop_process',
    title: 'Stop a process',
    description: 'Kills a process with all that it started, and forgets its output.',
    input: One,
    isDestructive: true,
    async run({ sandboxId, pid }, { ask, signal }) {
      await askJson(ask, { method: 'DELETE', path: `/v1/sandboxes/${sandboxId}/processes/${pid}`, signal })
      return { text: `Process ${pid} is stopped.`, structured: { pid, status: 'stopped' } }
    },
  }),
  tool({
    name: 'show_port',
    title: 'Show a port',
    description: 'Makes a link by which anybody who has it sees the web server on a port of a sandbox.',
    input: Show,
    async run({ sandboxId, port, expiresIn }, { ask, signal }) {
      const path = `/v1/sandboxes/${sandboxId}/ports/${port}/link`
      const body = expiresIn === undefined ? {} : { expiresIn }
      const answer = await askJson(ask, { method: 'POST', path, body, signal })
      return { text: `${answer?.url}\nIt ends at ${answer?.expiresAt}.`, structured: { ...answer } }
    },
  }),
]

const described = ({ pid, name, command, status, exitCode, startedAt }: JsonObject) => ({
  pid,
  name: name ?? null,
  command: (Array.isArray(command) ? command.join(' ') : String(command)).slice(0, 500),
  status,
  exitCode: exitCode ?? null,
  startedAt,
})

async function readOutput(input: Static<typeof Output>, { ask, signal, tell }: Call): Promise<Outcome> {
  const { sandboxId, pid, offset = 0, waitMs = 0, maxCharacters = DEFAULT_CHARACTERS } = input
  const over = new AbortController()
  const timer = waitMs > 0 ? setTimeout(() => over.abort(), waitMs) : undefined
  const query = new URLSearchParams({ offset: String(offset), follow: String(waitMs > 0) })
  const output = createBoundedText(maxCharacters)
  let exit: JsonObject | undefined
  let gap = false
  let nextOffset = offset
  try {
    const path = `/v1/sandboxes/${sandboxId}/processes/${pid}/output?${query}`
    const until = AbortSignal.any([signal, over.signal])
    const response = await assertDone(await ask({ method: 'GET', path, events: true, signal: until }))
    for await (const event of eventsOf(response)) {
      if (event.type === 'error') throw errorOf(event)
      if (event.type === 'exit') exit = event
      if (event.type === 'gap') gap = true
      if (event.type === 'gap') nextOffset = Number(event.offset)
      if (event.type !== 'stdout' && event.type !== 'stderr') continue
      const text = String(event.data)
      output.add(text)
      nextOffset = Number(event.offset) + Buffer.byteLength(text)
      tell(text.trimEnd().split('\n').at(-1) ?? '')
    }
  } catch (error) {
    // The time to wait is over, and the process goes on.
    if (!over.signal.aborted || signal.aborted) throw error
  } finally {
    clearTimeout(timer)
  }
  signal.throwIfAborted()
  const status = exit ? 'exited' : 'running'
  const structured = {
    pid,
    status,
    exitCode: exit?.exitCode ?? null,
    output: output.text(),
    truncated: gap || output.isCut,
    nextOffset,
  }
  const end = exit ? `[exited with ${exit.exitCode ?? 'a signal'}]` : `[goes on; nextOffset ${nextOffset}]`
  return { text: [output.text(), end].filter(part => part !== '').join('\n'), structured }
}
