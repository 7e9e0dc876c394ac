import type { Caller } from '../../../core/access/caller.ts'
import { toE2bId } from '../../../core/e2b/ids.ts'
import { EVERYTHING } from '../../../core/e2b/network.ts'
import type { KnownSandbox } from '../../../core/e2b/sandboxes.ts'
import { writeE2bToken } from '../../../core/e2b/tokens.ts'
import type { Runtime } from '../../../core/runtime.ts'
import type { Limits } from '../../../plugin-api/index.ts'

/** The newest version of E2B's daemon that its clients compare with: from this one on they use every feature. */
const ENVD_VERSION = '0.6.4'
/** The id of the machine in E2B's cloud. Clients require the field and do not use it. */
const CLIENT_ID = 'threadbox'

/** The fields that a client needs to use a sandbox. */
export function describeAccess(runtime: Runtime, { keyId }: Caller, { sandbox, e2b }: KnownSandbox) {
  return {
    sandboxID: toE2bId(sandbox.id),
    templateID: e2b.template,
    alias: sandbox.agentSlug,
    clientID: CLIENT_ID,
    envdVersion: ENVD_VERSION,
    envdAccessToken: writeE2bToken(runtime, 'access', sandbox.id, keyId),
    trafficAccessToken: e2b.isPrivate ? writeE2bToken(runtime, 'traffic', sandbox.id, keyId) : null,
    domain: runtime.config.previewDomain ?? null,
  }
}

/** The fields of a sandbox in a list. */
export function describeListed({ sandbox, e2b }: KnownSandbox, limits: Limits) {
  return {
    sandboxID: toE2bId(sandbox.id),
    templateID: e2b.template,
    alias: sandbox.agentSlug,
    clientID: CLIENT_ID,
    envdVersion: ENVD_VERSION,
    startedAt: sandbox.createdAt,
    endAt: e2b.endsAt,
    state: e2b.pausedAt === undefined ? 'running' : 'paused',
    ...describeSize(limits),
    metadata: e2b.metadata,
  }
}

/** All fields of a sandbox. */
export function describeSandbox(runtime: Runtime, caller: Caller, known: KnownSandbox, limits: Limits) {
  const { sandbox, e2b } = known
  const { envdAccessToken, domain } = describeAccess(runtime, caller, known)
  const denyOut = e2b.network?.denyOut ?? []
  return {
    ...describeListed(known, limits),
    ...{ envdAccessToken, domain },
    allowInternetAccess: !denyOut.includes(EVERYTHING),
    lifecycle: { onTimeout: e2b.onEnd, autoResume: e2b.resumes },
    network: {
      allowOut: e2b.network?.allowOut ?? [],
      denyOut,
      allowPublicTraffic: !e2b.isPrivate,
      ...(e2b.maskedHost !== undefined && { maskRequestHost: e2b.maskedHost }),
    },
    ...(sandbox.error !== undefined && { error: sandbox.error }),
  }
}

/** Clients want whole numbers. Zero means no limit. */
export const describeSize = ({ cpus, memoryMb, diskMb }: Limits) => ({
  cpuCount: Math.ceil(cpus ?? 0),
  memoryMB: memoryMb ?? 0,
  diskSizeMB: diskMb ?? 0,
})
