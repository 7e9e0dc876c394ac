import { expect } from 'bun:test'
import { runCommand } from '../../src/environment/run-command.ts'
import type { Environment } from '../../src/plugin-api/index.ts'
import { until } from '../support/until.ts'

/** Limits of process 1, also by the ids of its threads, that root inside sets so low that nothing could be started. */
const wedge = `
import os, resource
for task in [1] + [int(name) for name in os.listdir('/proc/1/task')]:
  for limit in [resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_STACK]:
    try: resource.prlimit(task, limit, (0, 0)); print('set', task, limit)
    except OSError: pass
print('tried')
`

export async function expectLimitsKept(environment: Environment): Promise<void> {
  const shell = async (command: string | string[]) =>
    (await runCommand(environment, { command, timeoutMs: 20_000 })).stdout
  expect(await shell(['python3', '-c', wedge])).toBe('tried\n')
  expect(await shell('echo alive >/tmp/alive; cat /tmp/alive')).toBe('alive\n')
}

/** Gives process 1 another mark again and again, so that what it starts has one that nobody looks for. */
const racer = `
import resource
print('racing', flush=True)
for _ in range(100_000_000):
  try: soft, hard = resource.prlimit(1, 10); resource.prlimit(1, 10, (5, hard))
  except OSError: pass
`

/** Whatever was started meanwhile ends with the kill of its command, or with a sandbox that starts anew. */
export async function expectNoneEscapes(environment: Environment): Promise<void> {
  const count = async () => {
    const { stdout } = await runCommand(environment, { command: 'pgrep -cf "^sleep 47474"', timeoutMs: 20_000 })
    return Number(stdout)
  }
  let isRacing = false
  for (let round = 0; round < 60; round++) {
    try {
      if (!isRacing) {
        isRacing = true
        const child = await environment.spawn({ command: ['python3', '-c', racer] })
        child.exited.catch(() => {}).finally(() => (isRacing = false))
        await child.stdout.getReader().read()
      }
      const abort = new AbortController()
      const child = await environment.spawn({ command: 'setsid sleep 47474 & sleep 47474', signal: abort.signal })
      abort.abort()
      await child.exited
    } catch {
      // It starts anew with its next use.
    }
  }
  await until(async () => (await count().catch(() => 1)) === 0)
}
