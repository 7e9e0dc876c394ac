import { Type } from '@sinclair/typebox'
import { answer, nullable, type Operations, Timestamp } from './operation.ts'

const Token = Type.Object({ token: Type.String(), expiresAt: Timestamp }, { title: 'Token' })

const sums = {
  calls: Type.Integer(),
  inputTokens: Type.Integer(),
  outputTokens: Type.Integer(),
  cacheReadTokens: Type.Integer(),
  cacheWriteTokens: Type.Integer(),
  costUsd: Type.Number(),
}

const Usage = Type.Object(
  {
    groupBy: Type.String(),
    groups: Type.Array(
      Type.Object(
        {
          key: nullable(Type.String()),
          ...sums,
          name: Type.Optional(nullable(Type.String({ description: 'Of a thread or key that is still there.' }))),
          sandboxId: Type.Optional(nullable(Type.String({ description: 'Where a thread is that is still there.' }))),
        },
        { additionalProperties: true },
      ),
    ),
    total: Type.Object(sums),
  },
  { title: 'Usage' },
)

const Budget = Type.Object(
  {
    kind: Type.String({
      description: '`server` and `key`: of the day, UTC. `agent`, `sandbox` and `thread`: of all time.',
    }),
    id: nullable(
      Type.String({ description: "An agent's slug, or an id. Null for the server, and for the configuration's key." }),
    ),
    name: nullable(Type.String({ description: 'Of the key or thread, or of the agent.' })),
    sandboxId: nullable(Type.String({ description: 'Where a thread is.' })),
    limitUsd: Type.Number({ description: 'Includes what people have approved on top of it.' }),
    spentUsd: Type.Number(),
  },
  { title: 'Budget' },
)

const Me = Type.Object(
  {
    id: nullable(Type.String({ description: "The key's; null for the key of the server's configuration." })),
    name: Type.String(),
    scopes: nullable(Type.Array(Type.String(), { description: 'What the key may do. Null: everything.' })),
    user: Type.Object({
      id: nullable(Type.String()),
      name: Type.String(),
      displayName: Type.String(),
      username: Type.String(),
      email: Type.Null(),
    }),
    team: Type.Object({ id: Type.String(), name: Type.String(), slug: Type.String() }),
  },
  { title: 'Me' },
)

const Health = Type.Object({ status: Type.Literal('ok') }, { title: 'Health', additionalProperties: true })

const Unavailable = Type.Optional(
  Type.Array(Type.String(), {
    description: 'What is missing of backends that are not the default: sandboxes there cannot be made or used.',
  }),
)

const Ready = Type.Object(
  { status: Type.Literal('ready'), unavailable: Unavailable },
  { title: 'Ready', additionalProperties: true },
)

const NotReady = Type.Object(
  { status: Type.Literal('not_ready'), reasons: Type.Array(Type.String()), unavailable: Unavailable },
  { title: 'NotReady' },
)

const Link = Type.Object(
  {
    url: Type.String(),
    expiresAt: Timestamp,
    host: Type.Optional(Type.Unknown({ description: 'On E2B: the address of the port on its own host.' })),
  },
  { title: 'Link' },
)

export const accountOperations: Operations = {
  'GET /health': {
    id: 'getHealth',
    summary: 'Says that the server is up',
    tag: 'Server',
    answers: { 200: answer(Health) },
    isPublic: true,
  },
  'GET /health/ready': {
    id: 'getReadiness',
    summary: 'Says whether the server takes new work',
    description:
      'With 503 and `reasons` while it shuts down, when a required check of its default backend fails, its disk is full, or its database cannot be written.',
    tag: 'Server',
    answers: { 200: answer(Ready), 503: answer(NotReady, 'It is not ready.') },
    isPublic: true,
  },
  'GET /v1/me': {
    id: 'getMe',
    summary: 'Says whose key or token this is',
    tag: 'Account',
    answers: { 200: answer(Me) },
  },
  'POST /v1/tokens': {
    id: 'createToken',
    summary: 'Makes a short-lived token for a browser',
    tag: 'Account',
    answers: { 201: answer(Token) },
    errors: ['agent_not_found'],
  },
  'GET /v1/usage': {
    id: 'getUsage',
    summary: 'Says what models used and cost',
    tag: 'Account',
    answers: { 200: answer(Usage) },
  },
  'GET /v1/budgets': {
    id: 'listBudgets',
    summary: 'Lists the budgets of the team, and what is spent of them',
    tag: 'Account',
    description:
      'Of sandboxes and threads those ten that have spent most. The budget of the server is for keys of the team `default`.',
    answers: { 200: answer(Type.Object({ budgets: Type.Array(Budget) })) },
  },
  'POST /v1/sandboxes/:sandboxId/ports/:port/link': {
    id: 'createPreviewLink',
    summary: 'Makes a link to a server in the sandbox',
    tag: 'Previews',
    answers: { 201: answer(Link) },
    errors: ['sandbox_unavailable'],
  },
}
