import { Elysia } from 'elysia'
import type { Runtime } from '../../core/runtime.ts'
import { findContext } from '../context.ts'
import { lifeRoutes } from './control/life.ts'
import { listingRoutes } from './control/listing.ts'
import { snapshotRoutes } from './control/snapshots.ts'
import { templateRoutes } from './control/templates.ts'
import { e2bFailure, refusal } from './failure.ts'

/** The routes by which E2B's clients make, list and end sandboxes. */
export const createControl = (runtime: Runtime) =>
  new Elysia()
    .onError(({ error, code, request }) => {
      if (code === 'NOT_FOUND') return refusal(404, explain(new URL(request.url).pathname))
      return e2bFailure(error, runtime.log, findContext(request)?.id)
    })
    .use(lifeRoutes(runtime))
    .use(listingRoutes(runtime))
    .use(snapshotRoutes(runtime))
    .use(templateRoutes(runtime))

/** Explains, for one of E2B's paths that does not exist here, what this server has instead. */
function explain(path: string): string {
  const [, word = ''] = /^\/(?:v\d+\/)?(\w+)/.exec(path) ?? []
  return Object.hasOwn(instead, word) ? (instead[word] ?? '') : 'There is no such endpoint.'
}

const instead: Readonly<Record<string, string>> = {
  templates: 'This server builds no templates: agents, bases and snapshots are templates here.',
  volumes: 'This server has no volumes.',
  secrets: 'Secrets are set and bound by the API of this server itself.',
  teams: 'Teams are made by the operator of this server.',
}
