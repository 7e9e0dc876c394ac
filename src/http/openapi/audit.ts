import { Type } from '@sinclair/typebox'
import { answer, nullable, type Operations, Timestamp } from './operation.ts'

const Names = Type.Object({}, { additionalProperties: true })

const AuditRow = Type.Object(
  {
    seq: Type.Integer({ description: 'Its place in the chain, which is that of all teams.' }),
    time: Timestamp,
    teamId: Type.String(),
    actor: Type.Object({}, { additionalProperties: true, description: 'Who did it. Empty: the server itself.' }),
    action: Type.String({ description: 'As `key.created`.' }),
    target: Names,
    outcome: Type.String(),
    detail: Type.Optional(Names),
    hash: Type.String({ description: 'The SHA-256 of the hash before it, a line feed and the row.' }),
  },
  { title: 'AuditRow' },
)

export const auditOperations: Operations = {
  'GET /v1/audit': {
    id: 'listAudit',
    summary: 'Lists what was done in the team, newest first',
    description: 'Who did what to what: ids and names, no content.',
    tag: 'Server',
    answers: { 200: answer(Type.Object({ rows: Type.Array(AuditRow), nextBefore: nullable(Type.Integer()) })) },
  },
}
