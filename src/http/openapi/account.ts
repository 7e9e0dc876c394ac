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
    groups: Type.Array(Type.Object({ key: nullable(Type.String()), ...sums }, { additionalProperties: true })),
    total: Type.Object(sums),
  },
  { title: 'Usage' },
)

const Me = Type.Object(
  {
    id: nullable(Type.String({ description: "The key's; null for the key of the server's configuration." })),
    name: Type.String(),
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
  'POST /v1/sandboxes/:sandboxId/ports/:port/link': {
    id: 'createPreviewLink',
    summary: 'Makes a link to a server in the sandbox',
    tag: 'Previews',
    answers: { 201: answer(Link) },
    errors: ['sandbox_unavailable'],
  },
}
