import type { KeptEnvironment } from '../../src/guest/host/kept-environment.ts'
import type { EnvironmentSpec } from '../../src/plugin-api/index.ts'
import type { BackendContext } from './context.ts'
import { findBase } from './find-base.ts'
import { getEnvironmentPaths } from './host/layout.ts'
import { unmarkSpare } from './host/spare-mark.ts'

/** Makes a spare a sandbox's own. False when its base is another by now. */
export async function claimSpare(
  context: BackendContext,
  environment: KeptEnvironment,
  { id, base }: EnvironmentSpec,
): Promise<boolean> {
  const { host, spareBases } = context
  // Before the base is looked at: of this and a removal of the base, one notices the other.
  unmarkSpare(getEnvironmentPaths(host.dataDirectory, id))
  return Bun.deepEquals(await findBase(context, base), spareBases.get(environment))
}
