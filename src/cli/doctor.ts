import { readConfig } from '../config.ts'
import type { PluginContext } from '../plugin.ts'
import { describeCheck, getBackend, isFatal } from './backend.ts'
import { log } from './log.ts'
import type { LoadPlugins } from './open-runtime.ts'

/** Tries what the chosen backend needs and prints each result. False when serve would refuse to start. */
export async function doctor(flags: readonly string[], load: LoadPlugins): Promise<boolean> {
  const config = await readConfig(flags, process.env)
  const { dataDirectory } = config
  // Nothing of a doctor's is to reach out.
  const serveProxy: PluginContext['serveProxy'] = (_, socket) => void socket.destroy()
  const { backends } = await load(config, { dataDirectory, serveProxy, log })
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
