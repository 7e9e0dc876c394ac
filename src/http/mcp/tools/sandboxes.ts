import { Type } from '@sinclair/typebox'
import { bounds } from '../../../bounds.ts'
import { ApiError } from '../../../errors.ts'
import { objectOf, objectsOf } from '../../../read/json.ts'
import { FileContents, Variables } from '../../schema.ts'
import { askJson, assertDone, errorOf } from '../ask.ts'
import { eventsOf } from '../events.ts'
import { type Tool, tool } from '../tool.ts'
import { AgentSlug, SandboxId } from './fields.ts'

const Create = Type.Object({
  agent: Type.Optional({ ...AgentSlug, description: 'Slug of the agent to make it for, as list_agents has them.' }),
  snapshot: Type.Optional(
    Type.String({ maxLength: bounds.id, description: 'Id or name of a snapshot to begin with.' }),
  ),
  files: Type.Optional({ ...FileContents, description: 'Absolute paths to contents.' }),
  envs: Type.Optional({ ...Variables, description: 'Environment variables of every command.' }),
  setup: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: bounds.setupCommand }), {
      maxItems: bounds.setupCommands,
      description: 'Commands to run before it is ready.',
    }),
  ),
})

const List = Type.Object({
  agent: Type.Optional(AgentSlug),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'Default 20.' })),
  before: Type.Optional({ ...SandboxId, description: 'nextBefore of the page before.' }),
})

const OneSandbox = Type.Object({ sandboxId: SandboxId })

export const sandboxTools: readonly Tool[] = [
  tool({
    name: 'list_agents',
    title: 'List agents',
    description: 'Lists the agents that sandboxes can be made for and that chat can talk to.',
    input: Type.Object({}),
    isReadOnly: true,
    async run(_, { ask, signal }) {
      const answer = await askJson(ask, { method: 'GET', path: '/v1/agents', signal })
      const agents = objectsOf(answer?.agents ?? answer?.items).map(({ slug, name }) => ({ slug, name }))
      return {
        text: agents.map(({ slug, name }) => `${slug}: ${name}`).join('\n') || 'No agents.',
        structured: { agents },
      }
    },
  }),
  tool({
    name: 'create_sandbox',
    title: 'Create a sandbox',
    description:
      'Makes a sandbox: an isolated Linux machine with files of its own. Gives its id. It stays until it is deleted.',
    input: Create,
    isLong: true,
    async run(input, { ask, signal, tell }) {
      const response = await assertDone(
        await ask({ method: 'POST', path: '/v1/sandboxes', body: input, events: true, signal }),
      )
      for await (const event of eventsOf(response)) {
        if (event.type === 'error') throw errorOf(event)
        if (event.type === 'stage') tell(`stage: ${event.stage}`)
        if (event.type === 'progress') tell(String(event.message))
        if (event.type === 'stdout' || event.type === 'stderr') tell(lastLine(String(event.data)))
        if (event.type !== 'ready') continue
        const { id, createdAt } = objectOf(event.sandbox) ?? {}
        return { text: `Sandbox ${id} is ready.`, structured: { sandboxId: id, createdAt } }
      }
      throw new ApiError('sandbox_unavailable', 'The sandbox could not be made.')
    },
  }),
  tool({
    name: 'list_sandboxes',
    title: 'List sandboxes',
    description: 'Lists sandboxes, newest first.',
    input: List,
    isReadOnly: true,
    async run({ agent, limit = 20, before }, { ask, signal }) {
      const query = new URLSearchParams({ limit: String(limit), ...(agent && { agent }), ...(before && { before }) })
      const answer = await askJson(ask, { method: 'GET', path: `/v1/sandboxes?${query}`, signal })
      const sandboxes = objectsOf(answer?.sandboxes).map(({ id, status, isRunning, agent, createdAt }) => ({
        sandboxId: id,
        agent: objectOf(agent)?.slug,
        status: status === 'active' && isRunning === false ? 'paused' : status,
        createdAt,
      }))
      const lines = sandboxes.map(each => `${each.sandboxId} ${each.agent} ${each.status} ${each.createdAt}`)
      return {
        text: lines.join('\n') || 'No sandboxes.',
        structured: { sandboxes, nextBefore: answer?.nextBefore ?? null },
      }
    },
  }),
  tool({
    name: 'pause_sandbox',
    title: 'Pause a sandbox',
    description: 'Ends what runs in a sandbox and keeps its files. Its next use starts it again.',
    input: OneSandbox,
    isDestructive: true,
    async run({ sandboxId }, { ask, signal }) {
      await askJson(ask, { method: 'POST', path: `/v1/sandboxes/${sandboxId}/stop`, signal })
      return { text: `Sandbox ${sandboxId} is paused.`, structured: { sandboxId, status: 'paused' } }
    },
  }),
  tool({
    name: 'delete_sandbox',
    title: 'Delete a sandbox',
    description: 'Deletes a sandbox with its files, processes and threads, for good.',
    input: OneSandbox,
    isDestructive: true,
    async run({ sandboxId }, { ask, signal }) {
      await askJson(ask, { method: 'DELETE', path: `/v1/sandboxes/${sandboxId}`, signal })
      return { text: `Sandbox ${sandboxId} is deleted.`, structured: { sandboxId, status: 'deleted' } }
    },
  }),
]

const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1) ?? ''
