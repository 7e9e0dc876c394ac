import { Type } from '@sinclair/typebox'
import { answer, EVENT_STREAM, Events, noContent, nullable, type Operations, Timestamp } from './operation.ts'
import { ThreadStatus } from './threads.ts'

const Decisions = Type.Object(
  { allowed: Type.Integer(), refused: Type.Integer() },
  { additionalProperties: true, description: 'How often programs inside were let out, and how often not.' },
)

const Decision = Type.Object(
  {
    host: Type.String(),
    port: Type.Integer(),
    isName: Type.Optional(
      Type.Literal(true, {
        description: 'The name was only looked up: the rules allow no port of it, and the port is that of DNS.',
      }),
    ),
    isAllowed: Type.Boolean(),
    reason: Type.Optional(
      Type.String({ description: 'Why it was refused; where it was allowed, why there is no connection.' }),
    ),
    obstacle: Type.Optional(
      Type.String({
        description:
          "Of a refusal: why its host and port on the sandbox's own list would not let it out. Absent when that is enough.",
      }),
    ),
    count: Type.Integer({ description: 'How often it was decided.' }),
    at: Timestamp,
  },
  { title: 'NetworkDecision' },
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

const nullableNumber = (description: string) => nullable(Type.Number({ description }))

const Use = Type.Object(
  {
    at: Timestamp,
    memoryBytes: nullableNumber('Without what the kernel gives back when memory is short.'),
    diskBytes: nullableNumber('What its files take.'),
    cpus: nullableNumber('CPU cores in use, in fractions.'),
    processes: nullableNumber('Processes and their threads.'),
  },
  { title: 'SandboxUse', description: 'A field is null where the backend cannot tell.' },
)

const Limits = Type.Object(
  {
    memoryMb: Type.Optional(Type.Number()),
    processes: Type.Optional(Type.Number()),
    cpus: Type.Optional(Type.Number()),
    diskMb: Type.Optional(Type.Number()),
  },
  { title: 'SandboxLimits', description: 'What is not limited is absent.' },
)

const Binding = Type.Object(
  {
    secret: Type.String(),
    hosts: Type.Array(Type.String()),
    as: Type.Object({}, { additionalProperties: true }),
    methods: Type.Optional(Type.Array(Type.String())),
    paths: Type.Optional(Type.Array(Type.String())),
    when: Type.Optional(Type.Object({}, { additionalProperties: true })),
  },
  { title: 'SecretBinding' },
)
const Secrets = nullable(Type.Array(Binding, { description: 'What its programs may use. Null for a token.' }))

const Kind = nullable(
  Type.String({ description: '`namespaces`, `container`, `gvisor` or `microvm`, the weakest first. Null: unknown.' }),
)

const summary = {
  id: Type.String(),
  sandboxId: Type.String({ description: 'The underlying environment. Paths and bodies take it in place of `id`.' }),
  name: nullable(Type.String({ description: 'As it was chosen with the create.' })),
  status: Type.String({ description: '`active`.' }),
  error: nullable(Type.String()),
  isRunning: nullable(
    Type.Boolean({
      description: 'False when it has stopped: its next use starts it. Null when its backend cannot tell.',
    }),
  ),
  use: nullable(Use),
  agent: Type.Object({ slug: Type.String(), name: Type.String() }),
  provider: Type.String({ description: 'The backend.' }),
  isolation: Type.Object({ kind: Kind }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
}

const SandboxSummary = Type.Object(summary, { title: 'SandboxSummary' })

const ThreadReference = Type.Object({ id: Type.String(), name: nullable(Type.String()), status: ThreadStatus })

const Sandbox = Type.Object(
  {
    ...summary,
    cwd: Type.String({ description: 'Where commands begin.' }),
    variables: nullable(
      Type.Array(Type.String(), {
        description: 'Names of its own variables. Null for a token, and when they cannot be decrypted.',
      }),
    ),
    threads: Type.Array(ThreadReference, { description: 'Newest first.' }),
    isolation: Type.Object({ kind: Kind, details: Type.Array(Type.String(), { description: 'What confines it.' }) }),
    limits: Limits,
    network: Network,
    secrets: Secrets,
  },
  { title: 'Sandbox' },
)

const ChangedSandbox = Type.Object({ ...summary, network: Network, secrets: Secrets }, { title: 'ChangedSandbox' })

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
    description:
      'With `Accept: text/event-stream` what happens meanwhile comes as events, with the status 200: lines `data: <json>`, `type` one of `stage`, `progress`, `stdout`, `stderr`, then `ready` with the sandbox, or `error`; at last `data: [DONE]`.',
    tag: 'Sandboxes',
    // Only this answer is described, because generated clients would mix the types of both.
    answers: { 201: answer(CreatedSandbox) },
    errors: ['agent_not_found', 'setup_failed', 'conflict', 'sandbox_unavailable'],
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
    summary: 'Changes what a sandbox reaches, and which secrets it may use, at once',
    description:
      '`secrets` takes the place of all bindings, those of the agent too, and wants a key with the scope `secrets`. Commands that begin later have their variables.',
    tag: 'Sandboxes',
    answers: { 200: answer(ChangedSandbox) },
    errors: ['conflict'],
  },
  'GET /v1/sandboxes/:sandboxId/network/decisions': {
    id: 'listNetworkDecisions',
    summary: 'Lists what the sandbox was allowed and refused, the latest first',
    description: "Of the last 200 hosts and ports since the server's start.",
    tag: 'Sandboxes',
    answers: { 200: answer(Type.Object({ decisions: Type.Array(Decision) })) },
  },
  'GET /v1/sandboxes/:sandboxId/stats': {
    id: 'listSandboxStats',
    summary: 'Lists what a sandbox used in the last hour, the oldest first',
    description:
      'Samples are kept in memory, and taken every `everyMs` while it runs and was used since the start of the server; of hundreds of running sandboxes less often.',
    tag: 'Sandboxes',
    answers: {
      200: answer(Type.Object({ everyMs: Type.Integer(), samples: Type.Array(Use) }, { title: 'SandboxStats' })),
    },
  },
  'POST /v1/sandboxes/:sandboxId/stop': {
    id: 'stopSandbox',
    summary: 'Ends the processes of a sandbox, and keeps all else',
    description: 'Its replies under way are cancelled, queues wait. The next use starts it again.',
    tag: 'Sandboxes',
    answers: { 200: answer(SandboxSummary) },
    errors: ['conflict', 'sandbox_unavailable'],
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
