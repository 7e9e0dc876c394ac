import { Type } from '@sinclair/typebox'
import { answer, EVENT_STREAM, Events, noContent, nullable, type Operations, Timestamp } from './operation.ts'
import { ThreadStatus } from './threads.ts'

const Decisions = Type.Object(
  { allowed: Type.Integer(), refused: Type.Integer() },
  { additionalProperties: true, description: 'How often programs inside were let out, and how often not.' },
)

const Network = Type.Object(
  {
    mode: Type.Union([Type.Literal('public'), Type.Literal('none')]),
    allowOut: nullable(Type.Array(Type.String())),
    denyOut: Type.Array(Type.String()),
    agentAllowOut: Type.Optional(Type.Array(Type.String())),
    decisions: Decisions,
  },
  { title: 'Network' },
)

const summary = {
  id: Type.String(),
  sandboxId: Type.String({ description: 'The underlying environment. Paths and bodies take it in place of `id`.' }),
  status: Type.String({ description: '`active`.' }),
  error: nullable(Type.String()),
  agent: Type.Object({ slug: Type.String(), name: Type.String() }),
  provider: Type.String({ description: 'The backend.' }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
}

const SandboxSummary = Type.Object(summary, { title: 'SandboxSummary' })

const ThreadReference = Type.Object({ id: Type.String(), name: nullable(Type.String()), status: ThreadStatus })

const Sandbox = Type.Object(
  {
    ...summary,
    threads: Type.Array(ThreadReference, { description: 'Newest first.' }),
    isolation: Type.Object({ kind: nullable(Type.String()), details: Type.Array(Type.String()) }),
    network: Network,
  },
  { title: 'Sandbox' },
)

const CreatedSandbox = Type.Object(
  { id: Type.String(), sandboxId: Type.String(), status: Type.String(), createdAt: Timestamp },
  { title: 'CreatedSandbox' },
)

const SandboxPage = Type.Object(
  {
    sandboxes: Type.Array(SandboxSummary),
    nextBefore: nullable(Type.String({ description: 'The next page is asked for with `before` set to this.' })),
  },
  { title: 'SandboxPage' },
)

const CommandResult = Type.Object(
  {
    stdout: Type.String(),
    stderr: Type.String(),
    exitCode: Type.Integer(),
    truncated: Type.Boolean({ description: 'One of the streams was longer than 1 MiB and was cut.' }),
  },
  { title: 'CommandResult' },
)

const Clone = Type.Object({ path: Type.String(), branch: Type.String() }, { title: 'Clone' })

export const sandboxOperations: Operations = {
  'POST /v1/sandboxes': {
    id: 'createSandbox',
    summary: 'Creates a sandbox',
    tag: 'Sandboxes',
    answers: { 201: answer(CreatedSandbox) },
    errors: ['agent_not_found', 'setup_failed', 'sandbox_unavailable'],
  },
  'GET /v1/sandboxes': {
    id: 'listSandboxes',
    summary: 'Lists sandboxes, newest first',
    tag: 'Sandboxes',
    answers: { 200: answer(SandboxPage) },
  },
  'GET /v1/sandboxes/:sandboxId': {
    id: 'getSandbox',
    summary: 'Gives a sandbox with its threads',
    tag: 'Sandboxes',
    answers: { 200: answer(Sandbox) },
  },
  'PATCH /v1/sandboxes/:sandboxId': {
    id: 'changeSandbox',
    summary: 'Changes what a sandbox reaches, at once',
    tag: 'Sandboxes',
    answers: { 200: answer(Type.Object({ ...summary, network: Network }, { title: 'ChangedSandbox' })) },
  },
  'DELETE /v1/sandboxes/:sandboxId': {
    id: 'deleteSandbox',
    summary: 'Deletes a sandbox with its processes, files and threads',
    tag: 'Sandboxes',
    answers: { 204: noContent },
    errors: ['sandbox_unavailable'],
  },
  'POST /v1/sandboxes/:sandboxId/exec': {
    id: 'runCommand',
    summary: 'Runs a command',
    description: 'With `Accept: text/event-stream` its output comes as events.',
    tag: 'Commands',
    answers: {
      200: {
        description: 'The command has run, whatever its exit code.',
        content: { 'application/json': CommandResult, [EVENT_STREAM]: Events },
      },
    },
    errors: ['command_timeout', 'sandbox_unavailable'],
  },
  'POST /v1/sandboxes/:sandboxId/git/clone': {
    id: 'cloneRepository',
    summary: 'Clones a git repository into the sandbox',
    tag: 'Commands',
    answers: { 200: answer(Clone) },
    errors: ['git_clone_failed', 'sandbox_unavailable'],
  },
}
