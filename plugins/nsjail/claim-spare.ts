import type { KeptEnvironment } from '../../src/guest/host/kept-environment.ts'
import type { EnvironmentSpec } from '../../src/plugin-api/index.ts'
import type { BackendContext } from './context.ts'
import { findBase } from './find-base.ts'
import { getEnvironmentPaths } from './host/layout.ts'
import { unmarkSpare } from './host/spare-mark.ts'

/** Makes a spare a sandbox's own. Returns false when its base has changed since. */
export async function claimSpare(
  context: BackendContext,
  environment: KeptEnvironment,
  { id, base }: EnvironmentSpec,
): Promise<boolean> {
  const { host, spareBases } = context
  // The mark goes before the base is looked at: when a removal of the base comes in between, one of the two notices the other.
  unmarkSpare(getEnvironmentPaths(host.dataDirectory, id))
  return Bun.deepEquals(await findBase(context, base), spareBases.get(environment))
}
