import { bounds } from '../../bounds.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { beginEnvironment } from '../../db/environments.ts'
import { newId } from '../../db/id.ts'
import { runCommand } from '../../environment/run-command.ts'
import { messageOf } from '../../errors.ts'
import type { AgentInput, AgentSandbox } from '../../model/agent.ts'
import type { CheckContext, Engine, Environment, Isolation } from '../../plugin-api/index.ts'
import { isObject, type JsonObject, parseJson, shapeOf } from '../../read/json.ts'
import { pickStart } from '../agents/operator-choices.ts'
import { placeTools } from '../agents/user-tools.ts'
import type { Runtime } from '../runtime.ts'
import { abandonEnvironment } from '../sandboxes/abandon-environment.ts'
import { assertReady, chooseBackend } from '../sandboxes/choose-backend.ts'
import { withoutZeroLimits } from '../sandboxes/environment-start.ts'
import { unpackTemplate } from '../sandboxes/set-up.ts'

const INSPECT_WITHIN_MS = 60_000
/** It has the files that new sandboxes begin with. */
const MAX_DESCRIPTION_BYTES = bounds.bodyBytes
const DESCRIPTION_SHAPE = { depth: bounds.jsonDepth, values: bounds.jsonValues }

export interface Inspection {
  bundle: string
  template: string | undefined
  env: Readonly<Record<string, string>>
  /** The agent that is deployed anew: its sandboxes' own beginning is this one's. */
  sandbox: AgentSandbox | undefined
  /** The bundle is somebody else's program, so it is isolated as the agent's sandboxes will be. */
  isolation: Isolation | undefined
  /** The agent that a description makes; its engine is asked whether it can run in such a sandbox. */
  toAgent(description: JsonObject | undefined): Pick<AgentInput, 'engine' | 'options'>
}

/** A bundle's description of its agent, or why it cannot be loaded; and what its engine lacks in the sandbox. */
export type Inspected = Described & { missing?: string }

type Described = { description: JsonObject; problem?: never } | { description?: never; problem: string }

/**
 * Loads a bundle in a sandbox that is made for this, reaches nothing, and is removed after; an archive of files is unpacked
 * there to see that it can be. Throws setup_failed for an archive that cannot, and conflict or sandbox_unavailable where the isolation
 * cannot be had.
 */
export async function inspectBundle(runtime: Runtime, inspection: Inspection, signal: AbortSignal): Promise<Inspected> {
  const { db, config, environments, networks, egress } = runtime
  const { env, sandbox } = inspection
  const chosen = chooseBackend(runtime, sandbox, inspection.isolation)
  const place = { backend: chosen.backend, environmentId: newId('env') }
  await assertReady(runtime, place.backend)
  const network = { own: { allowOut: [] } }
  await writeWhenFree(db, () => beginEnvironment(db, place))
  const environment = await environments.create({
    ...(sandbox && pickStart(sandbox)),
    ...chosen,
    id: place.environmentId,
    limits: withoutZeroLimits(config.limits),
    env,
    network: { mode: 'none', layers: [] },
  })
  networks.prepare(place.environmentId, network)
  try {
    if (inspection.template !== undefined)
      await unpackTemplate(environment, runtime.bundles, inspection.template, signal)
    const tools = await placeTools(environment, runtime.bundles, inspection.bundle)
    const described = await describe(environment, tools, env, signal)
    const { engine, options } = inspection.toAgent(described.description)
    const missing = await missingFor(runtime.engines.get(engine), { environment, cwd: '/', env, signal, options })
    return { ...described, ...(missing !== undefined && { missing }) }
  } finally {
    await abandonEnvironment(runtime, place)
    egress.forget(place.environmentId)
    networks.prepare(place.environmentId)
  }
}

/** Asks the engine what it lacks. The agent's set-up commands, which are not run here, may still bring it. */
async function missingFor(engine: Engine | undefined, context: CheckContext): Promise<string | undefined> {
  try {
    await engine?.check?.(context)
    return undefined
  } catch (error) {
    context.signal.throwIfAborted()
    return messageOf(error)
  }
}

async function describe(
  environment: Environment,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Described> {
  const argv = [...command, '--describe']
  const { stdout, stderr, exitCode } = await runCommand(environment, {
    command: argv,
    env,
    signal,
    timeoutMs: INSPECT_WITHIN_MS,
    maxOutputBytes: MAX_DESCRIPTION_BYTES,
  })
  const { depth, values } = shapeOf(Buffer.from(stdout), DESCRIPTION_SHAPE)
  const isBounded = depth <= DESCRIPTION_SHAPE.depth && values <= DESCRIPTION_SHAPE.values
  const description = isBounded ? parseJson(stdout) : undefined
  return isObject(description)
    ? { description }
    : { problem: stderr.trim().slice(-2000) || `It ended with exit code ${exitCode}.` }
}
