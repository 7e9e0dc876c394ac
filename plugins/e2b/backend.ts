import { ApiError, messageOf } from '../../src/errors.ts'
import type { Backend, EnvironmentSpec } from '../../src/plugin-api/index.ts'
import { checkE2b } from './checks.ts'
import { type Connection, createControl, type Described, missingKey } from './control.ts'
import { createEnvironment, type E2bEnvironment } from './environment.ts'
import { keepAliveMs } from './keep-alive.ts'
import { createLabel } from './label.ts'
import { toE2bNetwork } from './network.ts'
import { createE2bSnapshots, findE2bSnapshot } from './snapshots.ts'

export interface E2bOptions {
  dataDirectory: string
  /** The server's environment with E2B_API_KEY, E2B_API_URL, E2B_SANDBOX_URL and E2B_DOMAIN. */
  connection: Connection
  /** The template of sandboxes whose agent names no other. */
  template: string
  /** Environments that are not used for this long are paused. 0: not while this server runs. */
  idleMs: number
  /** The URL at which sandboxes reach this server, if they can. */
  publicUrl?: string
  log(line: string): void
}

/** Environments in sandboxes of E2B. The SDK is loaded, and E2B called, only at the first use. */
export function createE2bBackend(options: E2bOptions): Backend {
  const { dataDirectory, connection, template, idleMs, log } = options
  const label = createLabel(dataDirectory)
  const closed = new AbortController()
  const control = createControl(connection, () => label.get(), closed.signal)
  const environments = new Map<string, E2bEnvironment>()
  const opening = new Map<string, Promise<E2bEnvironment | undefined>>()
  const server = crypto.randomUUID()

  const keep = (id: string, sandboxId: string, parts: Partial<Parameters<typeof createEnvironment>[0]>) => {
    const environment = createEnvironment({
      ...{ id, sandboxId, control, idleMs, server, log, confinement: [], networkLine: 'network: not known', ...parts },
      onDestroyed: () => environments.delete(id),
    })
    environments.set(id, environment)
    return environment
  }

  const find = async (id: string) => {
    const sandboxId = await control.find(id)
    const described = sandboxId === undefined ? undefined : await control.describe(sandboxId)
    if (sandboxId === undefined || !described) return undefined
    return keep(id, sandboxId, {
      confinement: describeConfinement(described),
      networkLine: describeNetwork(described),
      limits: limitsOf(described),
    })
  }

  return {
    name: 'e2b',
    isolation: 'microvm',
    egress: 'own',
    check: () => checkE2b(connection, control, options),

    async create(spec: EnvironmentSpec) {
      if (!connection.E2B_API_KEY) throw missingKey()
      const network = toE2bNetwork(spec.network ?? { mode: 'public', layers: [] })
      const timeoutMs = keepAliveMs(idleMs)
      const kept = spec.snapshot === undefined ? undefined : await findE2bSnapshot(dataDirectory, spec.snapshot)
      const wanted = {
        id: spec.id,
        template: kept ?? spec.template ?? template,
        env: spec.env ?? {},
        network,
        timeoutMs,
      }
      spec.onProgress?.({ message: `starting a sandbox of the template ${wanted.template}` })
      try {
        const begun = await control.create(wanted)
        // E2B keeps the memory of a paused sandbox too.
        if (kept !== undefined) await control.pause(begun.sandboxId)
        const made = kept === undefined ? begun : await control.connect(begun.sandboxId, timeoutMs)
        const described = await control.describe(made.sandboxId)
        return keep(spec.id, made.sandboxId, {
          made,
          networkLine: network.line,
          confinement: described ? describeConfinement(described) : [],
          ...(described && { limits: limitsOf(described) }),
        })
      } catch (error) {
        const left = await control.find(spec.id).catch(() => undefined)
        if (left !== undefined) {
          await control.kill(left).catch(problem => log(`${spec.id} could not be removed: ${messageOf(problem)}`))
        }
        throw error
      }
    },

    async open(id) {
      if (!/^[a-zA-Z0-9_-]{1,100}$/.test(id)) return undefined
      const known = environments.get(id)
      if (known) return known
      if (!label.exists()) return undefined
      if (!connection.E2B_API_KEY) throw missingKey()
      const found = opening.get(id) ?? find(id).finally(() => opening.delete(id))
      opening.set(id, found)
      return found
    },

    snapshots: createE2bSnapshots(dataDirectory, control, () => {
      if (!connection.E2B_API_KEY) throw missingKey()
    }),

    listRunning: () => [...environments.values()].filter(({ isRunning }) => isRunning).map(({ id }) => id),

    async list() {
      // No label: no sandbox was ever created, so a server with another backend neither needs a key nor loads the SDK.
      if (!label.exists()) return []
      if (!connection.E2B_API_KEY) throw missingKey()
      return await control.list()
    },

    async close() {
      closed.abort(new ApiError('shutting_down', 'The server is shutting down.'))
      for (const environment of environments.values()) environment.release()
      environments.clear()
    },
  }
}

const limitsOf = ({ memoryMB, cpuCount }: Described) => ({ memoryMb: memoryMB, cpus: cpuCount })

const describeConfinement = ({ memoryMB, cpuCount }: Described): string[] => [
  'isolation: a virtual machine of E2B',
  `memory: ${memoryMB} MB, by the template`,
  'processes: what the memory holds',
  `cpu: ${cpuCount} cores, by the template`,
  'disk: by the template',
]

function describeNetwork({ allowInternetAccess, allowOut, denyOut }: Described): string {
  if (allowOut.length > 0) return `network: ${allowOut.join(', ')}, by itself`
  if (allowInternetAccess === false) return 'network: none'
  return `network: what is public, by itself${denyOut.length > 0 ? `, but ${denyOut.join(', ')}` : ''}`
}
