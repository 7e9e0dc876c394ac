import { readConfig } from '../config.ts'
import { closedContext, describeCheck, getBackend, isFatal } from './backend.ts'
import type { Given } from './command-line.ts'
import type { LoadPlugins } from './open-runtime.ts'

/** Tries what the chosen backend needs and prints each result. False when serve would refuse to start. */
export async function doctor({ settings }: Given, load: LoadPlugins): Promise<boolean> {
  const config = await readConfig(settings, process.env)
  const { backends } = await load(config, closedContext(config.dataDirectory))
  const backend = getBackend(backends, config.backend)
  const checks = await backend.check()
  await backend.close()
  for (const check of checks) console.log(describeCheck(check))
  const failed = checks.filter(isFatal)
  console.log(
    failed.length === 0
      ? '\nserve will start.'
      : `\nserve will not start: ${failed.map(({ name }) => name).join(', ')}`,
  )
  return failed.length === 0
}
