import { bounds } from '../bounds.ts'
import type { AgentSandbox } from '../db/agents.ts'
import { writeWhenFree } from '../db/busy.ts'
import { beginEnvironment, settleEnvironment } from '../db/environments.ts'
import { newId } from '../db/id.ts'
import { runShell } from '../guest/shell.ts'
import { isObject, type JsonObject, parseJson, shapeOf } from '../json.ts'
import type { Environment } from '../plugin.ts'
import type { Runtime } from '../runtime.ts'
import { limitsOf, startOf } from './sandboxes.ts'
import { unpackTemplate } from './set-up.ts'
import { placeTools } from './user-tools.ts'

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
}

/** What a bundle says of its agent, or why it cannot be loaded. */
export type Inspected = { description: JsonObject; problem?: never } | { description?: never; problem: string }

/**
 * Loads a bundle in a sandbox that is made for this, reaches nothing, and is removed after; an archive of files is unpacked
 * there to see that it can be. Throws setup_failed for an archive that cannot.
 */
export async function inspectBundle(runtime: Runtime, inspection: Inspection, signal: AbortSignal): Promise<Inspected> {
  const { db, config, environments, networks, egress } = runtime
  const { env, sandbox } = inspection
  const place = { backend: config.backend, environmentId: newId('env') }
  const network = { own: { allowOut: [] } }
  await writeWhenFree(db, () => beginEnvironment(db, place))
  const environment = await environments.create({
    ...(sandbox && startOf(sandbox)),
    id: place.environmentId,
    backend: place.backend,
    limits: limitsOf(config.limits),
    env,
    network: { mode: 'none', layers: [] },
  })
  networks.prepare(place.environmentId, network)
  try {
    if (inspection.template !== undefined)
      await unpackTemplate(environment, runtime.bundles, inspection.template, signal)
    return await describe(environment, await placeTools(environment, runtime.bundles, inspection.bundle), env, signal)
  } finally {
    await environments.destroy(place)
    await writeWhenFree(db, () => settleEnvironment(db, place.environmentId))
    egress.forget(place.environmentId)
    networks.prepare(place.environmentId)
  }
}

async function describe(
  environment: Environment,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Inspected> {
  const argv = [...command, '--describe']
  const { stdout, stderr, exitCode } = await runShell(environment, {
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
