import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import type { Runtime } from '../../core/runtime.ts'
import { type Fork, forkSandbox } from '../../core/snapshots/fork-sandbox.ts'
import { createSnapshot, listTeamSnapshots, removeSnapshot } from '../../core/snapshots/snapshots.ts'
import type { Snapshot } from '../../model/snapshot.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'
import { Id, PageSize, SandboxParams } from '../schema.ts'

/** A name must not look like the id of another snapshot. */
const SnapshotName = Type.String({
  pattern: '^(?!snap_)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$',
  description:
    'Letters, digits, dots, hyphens and underscores. A team has a name once; it stands for the id everywhere.',
  errorMessage: 'must be 1 to 64 letters, digits, dots, hyphens and underscores, and not begin with snap_',
})

const Page = Type.Object({ limit: Type.Optional(PageSize), before: Type.Optional(Id) })

const ForkBody = Type.Object({
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: bounds.forks, description: 'Default 1.' })),
  threadId: Type.Optional(Type.String({ maxLength: bounds.id, description: 'Each fork gets a copy of this thread.' })),
  messageId: Type.Optional(
    Type.String({
      maxLength: bounds.id,
      description: 'The last message of the copies. Default: the last that is stored.',
    }),
  ),
})

const DEFAULT_PAGE = 50

export const snapshotRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1' })
    .post(
      '/sandboxes/:sandboxId/snapshots',
      async ({ request, params: { sandboxId }, body, status }) =>
        status(201, show(await createSnapshot(runtime, getCaller(request), sandboxId, body, request.signal))),
      { params: SandboxParams, ...json(Type.Object({ name: Type.Optional(SnapshotName) })) },
    )
    .get(
      '/sandboxes/:sandboxId/snapshots',
      ({ request, params: { sandboxId }, query }) =>
        showPage(query, page => listTeamSnapshots(runtime, getCaller(request), { ...page, sandboxId })),
      { params: SandboxParams, query: Page },
    )
    .get(
      '/snapshots',
      ({ request, query }) => showPage(query, page => listTeamSnapshots(runtime, getCaller(request), page)),
      { query: Page },
    )
    .delete(
      '/snapshots/:snapshotId',
      async ({ request, params: { snapshotId }, status }) => {
        await removeSnapshot(runtime, getCaller(request), snapshotId)
        return status(204, undefined)
      },
      { params: Type.Object({ snapshotId: Type.String() }) },
    )
    .post(
      '/sandboxes/:sandboxId/fork',
      async ({ request, params: { sandboxId }, body, status }) => {
        const { forks, ...how } = await forkSandbox(runtime, getCaller(request), sandboxId, body, request.signal)
        return status(201, { ...how, keeps: 'files' as const, forks: forks.map(showFork) })
      },
      { params: SandboxParams, ...json(ForkBody) },
    )

function showPage(
  { limit, before }: { limit?: string; before?: string },
  list: (page: { limit: number; before?: string }) => Snapshot[],
) {
  const size = Number(limit ?? DEFAULT_PAGE)
  const found = list({ limit: size + 1, ...(before && { before }) })
  const snapshots = found.slice(0, size).map(show)
  return { snapshots, nextBefore: found.length > size ? (snapshots.at(-1)?.id ?? null) : null }
}

const show = (snapshot: Snapshot) => ({
  id: snapshot.id,
  name: snapshot.name ?? null,
  sandbox: { id: snapshot.sandboxId },
  agent: { slug: snapshot.agentSlug, name: snapshot.agentName },
  provider: snapshot.backend,
  diskBytes: snapshot.bytes,
  frozenMs: snapshot.frozenMs,
  method: snapshot.method,
  keeps: 'files' as const,
  createdAt: snapshot.createdAt,
})

function showFork(fork: Fork) {
  if ('error' in fork) return { error: { code: fork.error.code, message: fork.error.message } }
  const { id, environmentId: sandboxId, status, createdAt } = fork.sandbox
  return { sandbox: { id, sandboxId, status, createdAt }, threadId: fork.thread?.id ?? null }
}
