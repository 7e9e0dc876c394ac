import { runCommand } from '../environment/run-command.ts'
import type { Environment } from '../plugin-api/index.ts'

/** Counts the living processes `sleep MARK` inside. */
export async function countSleepers(environment: Environment, mark: string): Promise<number> {
  const list = `for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null`
  return Number((await runCommand(environment, { command: `${list} | grep -c '^sleep ${mark} $'` })).stdout)
}
