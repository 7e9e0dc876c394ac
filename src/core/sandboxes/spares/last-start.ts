import { findAgent } from '../../../db/agents.ts'
import { findNewestSandbox } from '../../../db/sandboxes.ts'
import type { EnvironmentStart, Runtime } from '../../runtime.ts'
import { chooseBackend } from '../choose-backend.ts'
import { toStart } from '../environment-start.ts'

/**
 * The settings of the next environment, as the newest sandbox's agent has them now; without one, those of an agent without
 * settings.
 */
export function findLastStart(runtime: Runtime): EnvironmentStart {
  const { db, config } = runtime
  const newest = findNewestSandbox(db)
  try {
    const agent = newest && findAgent(db, newest.teamId, newest.agentSlug)
    return toStart({ ...config, ...chooseBackend(runtime, agent?.sandbox, agent?.sandbox.isolation) }, agent)
  } catch {
    // An agent that cannot be decrypted, or asks for what is not here, can have no new sandbox.
    return toStart(config)
  }
}
