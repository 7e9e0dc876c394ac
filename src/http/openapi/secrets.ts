import { Type } from '@sinclair/typebox'
import { answer, noContent, type Operations, Timestamp } from './operation.ts'

const secret = { name: Type.String(), createdAt: Timestamp, updatedAt: Timestamp }

const Secret = Type.Object(secret, { title: 'Secret', description: 'Without its value, which is never told.' })

const ListedSecret = Type.Object(
  {
    ...secret,
    agents: Type.Array(Type.String(), { description: 'Slugs of the agents that bind it.' }),
    sandboxes: Type.Integer({ description: 'How many sandboxes may use it.' }),
  },
  { title: 'ListedSecret' },
)

export const secretOperations: Operations = {
  'GET /v1/secrets': {
    id: 'listSecrets',
    summary: 'Lists the secrets of the team by name, and who binds them',
    tag: 'Secrets',
    answers: { 200: answer(Type.Object({ secrets: Type.Array(ListedSecret) })) },
  },
  'PUT /v1/secrets/:name': {
    id: 'setSecret',
    summary: 'Stores the value of a secret',
    description: 'Sandboxes that may use it use the new value from their next request on.',
    tag: 'Secrets',
    answers: { 200: answer(Secret) },
    errors: ['conflict'],
  },
  'DELETE /v1/secrets/:name': {
    id: 'removeSecret',
    summary: 'Removes a secret: no sandbox can use it any more',
    tag: 'Secrets',
    answers: { 204: noContent },
    errors: ['not_found'],
  },
}
