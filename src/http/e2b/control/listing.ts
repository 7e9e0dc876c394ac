import { Elysia } from 'elysia'
import { getE2bSandbox, type KnownSandbox, listOwnE2bSandboxes } from '../../../core/e2b/sandboxes.ts'
import type { Runtime } from '../../../core/runtime.ts'
import { ApiError } from '../../../errors.ts'
import type { E2bPage } from '../../../model/e2b-sandbox.ts'
import type { Use } from '../../../model/use.ts'
import type { Limits } from '../../../plugin-api/index.ts'
import { getCaller } from '../../caller.ts'
import { describeListed, describeSandbox, describeSize } from './answers.ts'
import { readPage, showPage } from './page.ts'
import { List, type ListQuery, MetricsQuery, SandboxParams } from './schema.ts'

const states = ['running', 'paused'] as const
type State = (typeof states)[number]

/** Routes that list and describe sandboxes. The older list has only running ones. */
export const listingRoutes = (runtime: Runtime) =>
  new Elysia()
    .get('/sandboxes', ({ request, query }) => list(runtime, request, query, ['running']), { query: List })
    .get('/v2/sandboxes', ({ request, query }) => list(runtime, request, query, states), { query: List })
    .get(
      '/sandboxes/:sandboxID',
      async ({ request, params: { sandboxID } }) => {
        const caller = getCaller(request)
        const known = getE2bSandbox(runtime, caller, sandboxID)
        return describeSandbox(runtime, caller, known, await limitsOf(runtime, known))
      },
      { params: SandboxParams },
    )
    .get(
      '/sandboxes/:sandboxID/metrics',
      async ({ request, params: { sandboxID }, query }) => {
        const known = getE2bSandbox(runtime, getCaller(request), sandboxID)
        return await measure(runtime, known, readMoment('start', query.start), readMoment('end', query.end))
      },
      { params: SandboxParams, query: MetricsQuery },
    )

async function list(runtime: Runtime, request: Request, query: ListQuery, usual: readonly State[]): Promise<Response> {
  const page = readList(query, usual)
  const found = listOwnE2bSandboxes(runtime, getCaller(request), { ...page, limit: page.limit + 1 })
  const shown = found.slice(0, page.limit)
  const sandboxes = await Promise.all(shown.map(async known => describeListed(known, await limitsOf(runtime, known))))
  return showPage(sandboxes, found.length > page.limit ? shown.at(-1)?.sandbox.id : undefined)
}

function readList(query: ListQuery, usual: readonly State[]): E2bPage {
  const { template, startedAfter, order = 'desc' } = query
  if (order !== 'desc' && order !== 'asc') throw wrong('order', 'must be asc or desc')
  const asked = query.state?.split(',').filter(each => each !== '')
  const wanted = asked && states.filter(each => asked.includes(each))
  if (asked && asked.length !== wanted?.length) throw wrong('state', 'must be running, paused or both')
  const from = startedAfter === undefined ? undefined : new Date(startedAfter)
  if (from && Number.isNaN(from.getTime())) throw wrong('startedAfter', 'must be a moment of ISO 8601')
  return {
    ...readPage(query),
    isAscending: order === 'asc',
    metadata: readMetadata(query.metadata),
    states: wanted ?? usual,
    ...(template !== undefined && { template }),
    ...(from && { from: from.toISOString() }),
  }
}

/** Reads `key=value&key2=value2`, where each part is encoded, and then the whole again. */
function readMetadata(text = ''): Record<string, string> {
  return Object.fromEntries([...new URLSearchParams(text)].map(pair => pair.map(each => decode(each))))
}

/** The newer clients encode once, the older twice. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The limits of a sandbox; empty when its environment cannot be opened. */
async function limitsOf({ environments }: Runtime, { sandbox }: KnownSandbox): Promise<Limits> {
  const environment = await environments.get(sandbox).catch(() => undefined)
  return environment?.limits ?? {}
}

const MIB = 1024 * 1024

/** What a sandbox used between two moments, and what it uses now when that lies between them. A paused sandbox uses nothing. */
async function measure(runtime: Runtime, known: KnownSandbox, start = 0, end = Number.POSITIVE_INFINITY) {
  const { sandbox, e2b } = known
  const limits = await limitsOf(runtime, known)
  const { uses } = runtime
  const [now] = e2b.pausedAt === undefined ? await uses.now([sandbox]) : []
  const samples = uses.samples(sandbox.environmentId)
  const all = now && now !== samples.at(-1) ? [...samples, now] : samples
  return all.filter(({ at }) => at >= start && at <= end).map(each => describeUse(each, limits))
}

function describeUse({ at, memoryBytes = 0, diskBytes = 0, cpus = 0 }: Use, limits: Limits) {
  const { cpuCount, memoryMB, diskSizeMB } = describeSize(limits)
  return {
    timestamp: new Date(at).toISOString(),
    timestampUnix: Math.floor(at / 1000),
    cpuCount,
    cpuUsedPct: (cpus / Math.max(limits.cpus ?? 1, 0.01)) * 100,
    memUsed: memoryBytes,
    memTotal: memoryMB * MIB,
    memCache: 0,
    diskUsed: diskBytes,
    diskTotal: diskSizeMB * MIB,
  }
}

/** Reads a moment given in seconds since 1970, as milliseconds. */
function readMoment(field: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,12}$/.test(text)) throw wrong(field, 'must be seconds since 1970')
  return Number(text) * 1000
}

const wrong = (field: string, what: string) => new ApiError('invalid_request', `${field}: ${what}`, { field })
