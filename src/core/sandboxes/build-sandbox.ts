import { writeWhenFree } from '../../db/busy.ts'
import { settleEnvironment } from '../../db/environments.ts'
import { inTransaction } from '../../db/open.ts'
import { insertSandbox } from '../../db/sandboxes.ts'
import type { Agent } from '../../model/agent.ts'
import type { Sandbox, SandboxInput } from '../../model/sandbox.ts'
import type { Environment, Isolation } from '../../plugin-api/index.ts'
import type { Caller } from '../access/caller.ts'
import type { EnvironmentStart, Runtime } from '../runtime.ts'
import { abandonEnvironment } from './abandon-environment.ts'
import { assertIsolation, assertReady, isolationOf } from './choose-backend.ts'
import type { OnCreateStep } from './create-steps.ts'
import { getEnvironment } from './get-environment.ts'
import { networkLayers } from './networks.ts'
import { assertFreeName } from './sandbox-names.ts'
import { type SetUp, setUp } from './set-up.ts'

/** A sandbox whose request was found to be good. */
export interface SandboxPlan {
  start: EnvironmentStart
  /** The isolations that are asked for: all of them hold. */
  isolation: readonly (Isolation | undefined)[]
  /** The row of the sandbox, as far as it does not depend on the environment. */
  row: Omit<SandboxInput, 'backend' | 'environmentId' | 'isolation' | 'status'>
  /** What happens in the environment before the sandbox exists. Absent when nothing does. */
  preparation?: Pick<SetUp, 'template' | 'files' | 'commands'> & { agent: Agent }
  /** Stores what belongs to the new sandbox, in the transaction that stores the sandbox itself. */
  store?: ((sandbox: Sandbox) => void) | undefined
}

export interface BuildOptions {
  signal?: AbortSignal | undefined
  onStep?: OnCreateStep | undefined
}

export interface BuiltSandbox {
  sandbox: Sandbox
  isSpare: boolean
}

/**
 * Gets an environment, prepares it, and stores its sandbox. When this rejects, nothing is left. `onStep` is called from the moment
 * at which the backend is known to be ready.
 */
export async function buildSandbox(
  runtime: Runtime,
  caller: Caller,
  plan: SandboxPlan,
  options: BuildOptions,
): Promise<BuiltSandbox> {
  const { db, config, networks, egress } = runtime
  const { start, row, preparation, store } = plan
  const { signal, onStep } = options
  const { backend } = start
  await assertReady(runtime, backend)
  void onStep?.({ type: 'stage', stage: 'environment' })
  const { environment, isSpare } = await getEnvironment(
    runtime,
    { ...start, env: row.envs, network: { mode: config.network, layers: networkLayers(row.network) } },
    onStep && (progress => void onStep({ type: 'progress', ...progress })),
  )
  const place = { backend, environmentId: environment.id }
  // Set-up commands run before the sandbox has a row from which its rules could be read.
  networks.prepare(place.environmentId, row.network, row.teamId)
  try {
    await assertIsolation(runtime, { backend, environment }, ...plan.isolation)
    if (preparation) await prepare(runtime, environment, { backend, row, preparation }, options)
    signal?.throwIfAborted()
    const isolation = isolationOf(runtime, { backend, environment })
    const sandbox = await writeWhenFree(db, () =>
      inTransaction(db, () => {
        // Another create may have taken the name meanwhile.
        assertFreeName(runtime, caller, row.name)
        settleEnvironment(db, place.environmentId)
        const stored = insertSandbox(db, { ...row, ...place, status: 'active', ...(isolation && { isolation }) })
        store?.(stored)
        return stored
      }),
    )
    return { sandbox, isSpare }
  } catch (error) {
    await abandonEnvironment(runtime, place)
    egress.forget(place.environmentId)
    throw error
  } finally {
    networks.prepare(place.environmentId)
  }
}

interface Prepared extends Required<Pick<SandboxPlan, 'row' | 'preparation'>> {
  backend: string
}

/** Sets an environment up. Files that this has written are on the disk when it resolves. */
async function prepare(
  runtime: Runtime,
  environment: Environment,
  { backend, row, preparation }: Prepared,
  { signal, onStep }: BuildOptions,
): Promise<void> {
  const { backends, trust } = runtime
  const { agent, ...work } = preparation
  const isThroughServer = backends.get(backend)?.egress !== 'own'
  await setUp(runtime, agent, isThroughServer ? await trust.prepare(environment) : environment, {
    ...work,
    cwd: row.cwd,
    env: row.envs,
    ...(signal && { signal }),
    ...(onStep && { onStep }),
  })
  signal?.throwIfAborted()
  const { template, commands, files } = work
  if (template !== undefined || commands.length > 0 || Object.keys(files).length > 0) await environment.sync?.()
}
