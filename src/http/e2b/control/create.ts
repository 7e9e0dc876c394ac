import { readNetwork } from '../../../core/e2b/network.ts'
import type { E2bRequest } from '../../../core/e2b/sandboxes.ts'
import { ApiError } from '../../../errors.ts'
import type { ChangeNetwork, CreateSandbox } from './schema.ts'

/** A host name with a port, or with `${PORT}` in place of digits. The pattern excludes whatever could end a header. */
const maskedHost = /^(?:\$\{PORT\}|[A-Za-z0-9.:[\]_-]){1,300}$/

/** Reads a client's request for a new sandbox. Throws invalid_request for features that this server does not have. */
export function readCreate(body: CreateSandbox, defaultSeconds: number): E2bRequest {
  const { network, autoPause, autoResume, metadata = {}, envVars: envs = {} } = body
  for (const name of ['volumeMounts', 'iam', 'mcp'] as const) if (isAsked(body[name])) throw missing(name)
  if (isAsked(network?.httpsPorts)) throw missing('network.httpsPorts')
  const mask = network?.maskRequestHost ?? undefined
  if (mask !== undefined && !maskedHost.test(mask)) throw wrong('network.maskRequestHost', 'must be a host name')
  return {
    template: body.templateID,
    metadata,
    envs,
    timeoutMs: (body.timeout ?? defaultSeconds) * 1000,
    onEnd: autoPause === true ? 'pause' : 'kill',
    resumes: autoResume?.enabled ?? false,
    isPrivate: network?.allowPublicTraffic === false,
    ...(mask !== undefined && { maskedHost: mask }),
    ...readRules({ ...network, allow_internet_access: body.allow_internet_access ?? null }),
  }
}

/** Reads network rules, in E2B's form and in this server's. */
export function readRules(wish: ChangeNetwork) {
  const { rules, egressProxy, allowOut, denyOut, allow_internet_access: access } = wish
  if (rules != null && Object.keys(rules).length > 0) throw missing('network.rules')
  if (egressProxy != null) throw missing('network.egressProxy')
  return readNetwork({
    allowOut: allowOut ?? undefined,
    denyOut: denyOut ?? undefined,
    allowInternetAccess: access ?? undefined,
  })
}

const isAsked = (value: unknown): boolean => value != null && !(Array.isArray(value) && value.length === 0)

const wrong = (field: string, what: string) => new ApiError('invalid_request', `${field}: ${what}`, { field })
const missing = (field: string) => wrong(field, 'this server does not have that')
