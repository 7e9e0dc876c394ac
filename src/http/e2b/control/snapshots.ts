import { Elysia, NotFoundError } from 'elysia'
import { excerpt } from '../../../bounds.ts'
import { forkE2bSandbox, getE2bSandbox } from '../../../core/e2b/sandboxes.ts'
import { nameOfTemplate } from '../../../core/e2b/templates.ts'
import type { Runtime } from '../../../core/runtime.ts'
import { createSnapshot, getSnapshot, listTeamSnapshots, removeSnapshot } from '../../../core/snapshots/snapshots.ts'
import { ApiError } from '../../../errors.ts'
import type { Snapshot } from '../../../model/snapshot.ts'
import { optionalJson } from '../../body.ts'
import { getCaller } from '../../caller.ts'
import { describeAccess } from './answers.ts'
import { readPage, showPage } from './page.ts'
import { Fork, SandboxParams, SnapshotsQuery, TakeSnapshot, TemplateParams } from './schema.ts'

/** The default time to live of forks. */
const FORK_SECONDS = 15

/** Routes for snapshots and forks. A snapshot is a template too. */
export const snapshotRoutes = (runtime: Runtime) =>
  new Elysia()
    .post(
      '/sandboxes/:sandboxID/snapshots',
      async ({ request, params: { sandboxID }, body, status }) => {
        const caller = getCaller(request)
        const { sandbox } = getE2bSandbox(runtime, caller, sandboxID)
        const name = body.name == null ? undefined : nameOfTemplate(body.name)
        if (name !== undefined && !/^(?!snap_)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name))
          throw new ApiError('invalid_request', 'name: must be letters, digits, dots, hyphens and underscores')
        const made = await createSnapshot(
          runtime,
          caller,
          sandbox.id,
          { ...(name !== undefined && { name }) },
          request.signal,
        )
        return status(201, describe(made))
      },
      { params: SandboxParams, ...optionalJson(TakeSnapshot) },
    )
    .get(
      '/snapshots',
      ({ request, query }) => {
        const caller = getCaller(request)
        const { limit, after } = readPage(query)
        if (query.name !== undefined) return findNamed(runtime, request, query.name)
        const of =
          query.sandboxID === undefined ? undefined : getE2bSandbox(runtime, caller, query.sandboxID).sandbox.id
        const found = listTeamSnapshots(runtime, caller, {
          limit: limit + 1,
          ...(after !== undefined && { before: after }),
          ...(of !== undefined && { sandboxId: of }),
        })
        const shown = found.slice(0, limit)
        return showPage(shown.map(describe), found.length > limit ? shown.at(-1)?.id : undefined)
      },
      { query: SnapshotsQuery },
    )
    // Else it would be a snapshot of that name.
    .delete('/templates/tags', () => {
      throw new NotFoundError()
    })
    .delete(
      '/templates/:templateID',
      async ({ request, params: { templateID } }) => {
        await removeSnapshot(runtime, getCaller(request), nameOfTemplate(templateID)).catch(error => {
          if (!(error instanceof ApiError) || error.code !== 'not_found') throw error
          const [name, rest] = [excerpt(templateID), 'other templates are removed as agents and bases are']
          throw new ApiError('not_found', `There is no snapshot '${name}'; ${rest}.`)
        })
        return new Response(null, { status: 204 })
      },
      { params: TemplateParams },
    )
    .post(
      '/sandboxes/:sandboxID/fork',
      async ({ request, params: { sandboxID }, body: { count = 1, timeout = FORK_SECONDS }, status }) => {
        const caller = getCaller(request)
        const wish = { count, timeoutMs: timeout * 1000 }
        const forks = await forkE2bSandbox(runtime, caller, sandboxID, wish, request.signal)
        return status(
          201,
          forks.map(fork =>
            'error' in fork
              ? { error: { code: fork.error.status, message: fork.error.message } }
              : { sandbox: describeAccess(runtime, caller, fork) },
          ),
        )
      },
      { params: SandboxParams, ...optionalJson(Fork) },
    )

/** A name that no snapshot has finds nothing. */
function findNamed(runtime: Runtime, request: Request, name: string): Response {
  try {
    return showPage([describe(getSnapshot(runtime, getCaller(request), nameOfTemplate(name)))], undefined)
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_found') return showPage([], undefined)
    throw error
  }
}

const describe = ({ id, name }: Snapshot) => ({ snapshotID: id, names: name === undefined ? [] : [name] })
