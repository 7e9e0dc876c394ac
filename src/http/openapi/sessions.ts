import { Type } from '@sinclair/typebox'
import { answer, noContent, nullable, type Operations, Timestamp } from './operation.ts'

const session = {
  id: Type.String(),
  keyId: nullable(Type.String({ description: "Null for the configured key, and for the operator's own link." })),
  browser: Type.String(),
  createdAt: Timestamp,
  expiresAt: Timestamp,
}

const Session = Type.Object(session, { title: 'Session' })

const Sessions = Type.Object({ sessions: Type.Array(Type.Object({ ...session, isCurrent: Type.Boolean() })) })

const CurrentSession = Type.Object({
  id: nullable(Type.String({ description: 'Null when the request came with a key.' })),
  caller: Type.Unknown({ description: 'As of GET /v1/me. Null for a browser that is not signed in.' }),
})

const key = {
  id: Type.String(),
  name: Type.String(),
  hint: Type.String({ description: 'Its last four characters.' }),
  createdAt: Timestamp,
  expiresAt: nullable(Timestamp),
  revokedAt: nullable(Timestamp),
  scopes: nullable(Type.Array(Type.String(), { description: 'What it may do. Null: everything.' })),
  limits: nullable(
    Type.Record(Type.String(), Type.String(), {
      description: 'Its own limits, as `{"key.requests":"5/s"}`. Null: those of the server.',
    }),
  ),
}

const NewKey = Type.Object({ ...key, key: Type.String({ description: 'Shown only here.' }) }, { title: 'NewKey' })

export const sessionOperations: Operations = {
  'POST /v1/session': {
    id: 'signIn',
    summary: 'Signs a browser in: answers with a cookie',
    tag: 'Account',
    answers: { 201: answer(Session) },
    errors: ['unauthorized', 'forbidden'],
    isPublic: true,
  },
  'GET /v1/session': {
    id: 'getSession',
    summary: 'Says who is signed in',
    tag: 'Account',
    answers: { 200: answer(CurrentSession) },
    errors: ['unauthorized', 'forbidden'],
    isPublic: true,
  },
  'DELETE /v1/session': {
    id: 'signOut',
    summary: 'Signs this browser out',
    tag: 'Account',
    answers: { 204: noContent },
  },
  'GET /v1/sessions': {
    id: 'listSessions',
    summary: 'Lists the browsers that are signed in',
    tag: 'Account',
    answers: { 200: answer(Sessions) },
  },
  'DELETE /v1/sessions/:sessionId': {
    id: 'endSession',
    summary: 'Signs a browser out',
    tag: 'Account',
    answers: { 204: noContent },
  },
  'GET /v1/keys': {
    id: 'listKeys',
    summary: "Lists the team's API keys",
    tag: 'Account',
    answers: { 200: answer(Type.Object({ keys: Type.Array(Type.Object(key, { title: 'Key' })) })) },
  },
  'POST /v1/keys': {
    id: 'createKey',
    summary: 'Makes an API key of the team',
    tag: 'Account',
    answers: { 201: answer(NewKey) },
  },
  'DELETE /v1/keys/:keyId': {
    id: 'revokeKey',
    summary: 'Refuses an API key from now on',
    tag: 'Account',
    answers: { 204: noContent },
  },
}
