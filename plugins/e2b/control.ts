import { ApiError } from '../../src/errors.ts'
import type { EnvironmentUsage } from '../../src/plugin-api/index.ts'
import type { E2bNetwork } from './network.ts'
import { retrying } from './retry.ts'
import { type E2bSandbox, loadSdk, type Sdk, toApiError } from './sdk.ts'

/** How to reach E2B: E2B_API_KEY, E2B_API_URL, E2B_SANDBOX_URL and E2B_DOMAIN of the server's environment. */
export type Connection = Readonly<Record<string, string | undefined>>

export interface NewSandbox {
  id: string
  template: string
  env: Readonly<Record<string, string>>
  network: E2bNetwork
  timeoutMs: number
}

export interface Described {
  memoryMB: number
  cpuCount: number
  allowInternetAccess?: boolean
  allowOut: string[]
  denyOut: string[]
}

/** E2B's control plane, for the sandboxes of one data directory. Errors are ApiErrors. */
export interface Control {
  /** Rejects when E2B does not answer, or refuses the key. */
  probe(): Promise<void>
  create(wanted: NewSandbox): Promise<E2bSandbox>
  /** Finds E2B's own id of an environment's sandbox. */
  find(environmentId: string): Promise<string | undefined>
  /** Lists the ids of all environments. */
  list(): Promise<string[]>
  describe(sandboxId: string): Promise<Described | undefined>
  /** Connects, and resumes a paused sandbox. It has at least this time from then on. */
  connect(sandboxId: string, timeoutMs: number): Promise<E2bSandbox>
  extend(sandboxId: string, timeoutMs: number): Promise<void>
  /** Ends the processes; the files stay. */
  pause(sandboxId: string): Promise<void>
  /** E2B's latest measurement, empty when it is too old. This does not resume a paused sandbox. */
  usage(sandboxId: string): Promise<EnvironmentUsage>
  setNetwork(sandboxId: string, network: E2bNetwork): Promise<void>
  kill(sandboxId: string): Promise<void>
  /** Takes a snapshot, and returns the name of its template at E2B. */
  snapshot(sandboxId: string, name: string): Promise<string>
  /** Removes a snapshot. Removing one that does not exist succeeds. */
  removeSnapshot(name: string): Promise<void>
}

/** The metadata by which sandboxes are found. */
const LABEL = 'threadbox'
const ENVIRONMENT = 'threadboxEnvironment'

const REQUEST_MS = 60_000
/** E2B measures every few seconds. */
const MEASURED_WITHIN_MS = 60_000

export function createControl(connection: Connection, label: () => Promise<string>, signal: AbortSignal): Control {
  let loading: Promise<Sdk> | undefined
  const options = () => {
    const { E2B_API_KEY: apiKey, E2B_API_URL: apiUrl, E2B_SANDBOX_URL: sandboxUrl, E2B_DOMAIN: domain } = connection
    if (!apiKey) throw missingKey()
    return {
      apiKey,
      requestTimeoutMs: REQUEST_MS,
      ...(apiUrl && { apiUrl }),
      ...(sandboxUrl && { sandboxUrl }),
      ...(domain && { domain }),
    }
  }

  /** Calls E2B, with retries where a repetition is harmless. The SDK itself waits after a 429. */
  const ask = async <T>(call: (sdk: Sdk) => Promise<T>): Promise<T> => {
    loading ??= loadSdk()
    const sdk = await loading
    const retryWaitMs = (error: unknown) => {
      const status = sdk.statusOf(error)
      return (status === undefined && !(error instanceof ApiError)) || status === 429 || (status ?? 0) >= 500
        ? 0
        : undefined
    }
    return await retrying(() => call(sdk), { signal, retryWaitMs }).catch(error => {
      throw toApiError(sdk, error)
    })
  }

  const page = async (sdk: Sdk, metadata: Record<string, string>) => {
    const paginator = sdk.Sandbox.list({ ...options(), query: { metadata } })
    const found: { sandboxId: string; metadata: Record<string, string> }[] = []
    while (paginator.hasNext) found.push(...(await paginator.nextItems()))
    return found
  }
  const findSandboxId = async (sdk: Sdk, environmentId: string) =>
    (await page(sdk, { [LABEL]: await label(), [ENVIRONMENT]: environmentId }))[0]?.sandboxId

  return {
    probe: () => ask(async sdk => void (await sdk.Sandbox.list({ ...options(), limit: 1 }).nextItems())),
    create: ({ id, template, env, network, timeoutMs }) =>
      ask(async sdk => {
        try {
          return await sdk.Sandbox.create(template, {
            ...options(),
            timeoutMs,
            envs: { ...env },
            metadata: { [LABEL]: await label(), [ENVIRONMENT]: id },
            // Takes effect even if this server is gone. A paused sandbox is kept and costs nothing.
            lifecycle: { onTimeout: 'pause' },
            allowInternetAccess: network.allowInternetAccess,
            network: { ...toLists(network), allowPublicTraffic: false },
          })
        } catch (error) {
          if (sdk.statusOf(error) === 404)
            throw new ApiError('invalid_request', `There is no E2B template ${template}.`)
          // The sandbox may exist although the answer was lost.
          const made = sdk.statusOf(error) === 429 ? undefined : await findSandboxId(sdk, id).catch(() => undefined)
          if (made === undefined) throw error
          return await sdk.Sandbox.connect(made, { ...options(), timeoutMs })
        }
      }),
    find: environmentId => ask(sdk => findSandboxId(sdk, environmentId)),
    list: () =>
      ask(async sdk =>
        (await page(sdk, { [LABEL]: await label() })).flatMap(({ metadata }) => metadata[ENVIRONMENT] ?? []),
      ),
    describe: sandboxId =>
      ask(async sdk => {
        const found = await sdk.Sandbox.getInfo(sandboxId, options()).catch(error => {
          if (sdk.statusOf(error) === 404) return undefined
          throw error
        })
        return found && toDescribed(found)
      }),
    connect: (sandboxId, timeoutMs) => ask(sdk => sdk.Sandbox.connect(sandboxId, { ...options(), timeoutMs })),
    extend: (sandboxId, timeoutMs) => ask(sdk => sdk.Sandbox.setTimeout(sandboxId, timeoutMs, options())),
    pause: sandboxId =>
      ask(async sdk => void (await sdk.Sandbox.pause(sandboxId, { ...options(), keepMemory: false }))),
    usage: sandboxId => ask(sdk => readUsage(sdk, sandboxId, options())),
    setNetwork: (sandboxId, network) =>
      ask(sdk =>
        sdk.Sandbox.updateNetwork(
          sandboxId,
          { ...toLists(network), allowInternetAccess: network.allowInternetAccess },
          options(),
        ),
      ),
    kill: sandboxId => ask(async sdk => void (await sdk.Sandbox.kill(sandboxId, options()))),
    snapshot: (sandboxId, name) =>
      ask(async sdk => (await sdk.Sandbox.createSnapshot(sandboxId, { ...options(), name })).snapshotId),
    removeSnapshot: name => ask(async sdk => void (await sdk.Sandbox.deleteSnapshot(name, options()))),
  }
}

const toDescribed = ({
  memoryMB,
  cpuCount,
  allowInternetAccess,
  network,
}: Awaited<ReturnType<Sdk['Sandbox']['getInfo']>>): Described => ({
  memoryMB,
  cpuCount,
  ...(allowInternetAccess !== undefined && { allowInternetAccess }),
  allowOut: network?.allowOut ?? [],
  denyOut: network?.denyOut ?? [],
})

async function readUsage(
  sdk: Sdk,
  sandboxId: string,
  options: Parameters<Sdk['Sandbox']['getMetrics']>[1],
): Promise<EnvironmentUsage> {
  const start = new Date(Date.now() - MEASURED_WITHIN_MS)
  const latest = (await sdk.Sandbox.getMetrics(sandboxId, { ...options, start })).at(-1)
  if (!latest) return {}
  const { cpuUsedPct, cpuCount, memUsed, diskUsed } = latest
  return { memoryBytes: memUsed, diskBytes: diskUsed, cpus: (cpuUsedPct / 100) * cpuCount }
}

const toLists = ({ allowOut, denyOut }: E2bNetwork) => ({ ...(allowOut && { allowOut }), ...(denyOut && { denyOut }) })

export const missingKey = () =>
  new ApiError('sandbox_unavailable', 'E2B_API_KEY is not set: start the server with the key of your E2B project.')
