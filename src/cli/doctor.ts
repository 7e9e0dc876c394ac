import { type Config, readConfig } from '../config.ts'
import type { Check } from '../plugin.ts'
import { UsageError } from './flags.ts'
import type { Plugins } from './serve.ts'

/** Tries what the chosen backend needs and prints each result. False when serve would refuse to start. */
export async function doctor(flags: readonly string[], load: (config: Config) => Promise<Plugins>): Promise<boolean> {
  const config = await readConfig(flags, process.env)
  const backend = (await load(config)).backends.get(config.backend)
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

/** One that keeps the server from starting. */
export const isFatal = ({ ok, required }: Check): boolean => required && !ok

export const describe = ({ name, ok, required, detail, remedy }: Check): string =>
  `${ok ? 'ok     ' : required ? 'FAILED ' : 'missing'}  ${name}: ${detail}${ok || !remedy ? '' : `\n         remedy: ${remedy}`}`
