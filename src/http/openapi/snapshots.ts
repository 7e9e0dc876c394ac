import { Type } from '@sinclair/typebox'
import { answer, noContent, nullable, type Operations, Timestamp } from './operation.ts'

const Method = Type.Union([Type.Literal('reflink'), Type.Literal('layers'), Type.Literal('copy')])

const frozenMs = Type.Integer({
  description: 'How long what runs in the sandbox could not write, in milliseconds. 0: it did not run.',
})

const keeps = Type.Literal('files', {
  description: 'Files alone: no process is part of it, and nothing that one has in memory.',
})

const Snapshot = Type.Object(
  {
    id: Type.String(),
    name: nullable(Type.String()),
    sandbox: Type.Object({ id: Type.String({ description: 'The sandbox that it was taken of, which may be gone.' }) }),
    agent: Type.Object({ slug: Type.String(), name: Type.String() }),
    provider: Type.String({ description: 'The backend.' }),
    diskBytes: Type.Integer({ description: 'What it takes on the disk. 0 where nobody knows.' }),
    frozenMs,
    method: Type.Unsafe<string>({
      ...Method,
      description:
        'How it was made of the sandbox. `reflink`: the file system shares blocks until one is written. `layers`: what was there is shared, below what is written. `copy`: all was copied.',
    }),
    keeps,
    createdAt: Timestamp,
  },
  { title: 'Snapshot' },
)

const SnapshotPage = Type.Object(
  {
    snapshots: Type.Array(Snapshot),
    nextBefore: nullable(Type.String({ description: 'The next page is asked for with `before` set to this.' })),
  },
  { title: 'SnapshotPage' },
)

const Fork = Type.Object(
  {
    sandbox: Type.Optional(
      Type.Object({ id: Type.String(), sandboxId: Type.String(), status: Type.String(), createdAt: Timestamp }),
    ),
    threadId: Type.Optional(nullable(Type.String({ description: 'Its copy of the thread. Null without `threadId`.' }))),
    error: Type.Optional(
      Type.Object({ code: Type.String(), message: Type.String() }, { description: 'Why there is no sandbox.' }),
    ),
  },
  { title: 'Fork' },
)

const Forks = Type.Object(
  {
    frozenMs,
    method: Type.Unsafe<string>({
      ...Method,
      description: "How the forks' disks were made: see the snapshot's `method`.",
    }),
    keeps,
    forks: Type.Array(Fork),
  },
  { title: 'Forks' },
)

export const snapshotOperations: Operations = {
  'POST /v1/sandboxes/:sandboxId/snapshots': {
    id: 'createSnapshot',
    summary: 'Keeps the files of a sandbox as of one moment',
    description: 'The sandbox goes on. The snapshot outlives it.',
    tag: 'Snapshots',
    answers: { 201: answer(Snapshot) },
    errors: ['conflict', 'sandbox_unavailable', 'disk_full'],
  },
  'GET /v1/sandboxes/:sandboxId/snapshots': {
    id: 'listSnapshotsOfSandbox',
    summary: 'Lists the snapshots of a sandbox, newest first',
    tag: 'Snapshots',
    answers: { 200: answer(SnapshotPage) },
  },
  'GET /v1/snapshots': {
    id: 'listSnapshots',
    summary: "Lists the team's snapshots, newest first",
    tag: 'Snapshots',
    answers: { 200: answer(SnapshotPage) },
  },
  'DELETE /v1/snapshots/:snapshotId': {
    id: 'deleteSnapshot',
    summary: 'Deletes a snapshot; sandboxes that were made of it go on',
    tag: 'Snapshots',
    answers: { 204: noContent },
    errors: ['not_found'],
  },
  'POST /v1/sandboxes/:sandboxId/fork': {
    id: 'forkSandbox',
    summary: 'Makes sandboxes that begin where this one is now',
    description:
      'With its files, limits, variables, network rules and agent. Each fork succeeds or fails by itself; the request fails when all do.',
    tag: 'Snapshots',
    answers: { 201: answer(Forks) },
    errors: ['thread_not_found', 'conflict', 'sandbox_unavailable', 'disk_full'],
  },
}
