import { readConfig } from '../config.ts'
import type { Check } from '../plugin.ts'
import { UsageError } from './flags.ts'
import type { LoadPlugins } from './serve.ts'

/** Tries what the chosen backend needs and prints each result. False when serve would refuse to start. */
export async function doctor(flags: readonly string[], load: LoadPlugins): Promise<boolean> {
  const config = await readConfig(flags, process.env)
  const backend = (await load(config, noProxy)).backends.get(config.backend)
  if (!backend) throw new UsageError(`--backend: there is no backend ${config.backend}`)
  const checks = await backend.check()
  await backend.close()
  for (const check of checks) console.log(describe(check))
  const failed = checks.filter(isFatal)
  console.log(
    failed.length === 0
      ? '\nserve will start.'
      : `\nserve will not start: ${failed.map(({ name }) => name).join(', ')}`,
  )
  return failed.length === 0
}

/** Nothing of a doctor's is to reach out. */
const noProxy: Parameters<LoadPlugins>[1] = (_, socket) => void socket.destroy()

/** One that keeps the server from starting. */
export const isFatal = ({ ok, required }: Check): boolean => required && !ok

export const describe = ({ name, ok, required, detail, remedy }: Check): string =>
  `${ok ? 'ok     ' : required ? 'FAILED ' : 'missing'}  ${name}: ${detail}${ok || !remedy ? '' : `\n         remedy: ${remedy}`}`
