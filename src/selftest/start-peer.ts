import type { Environment } from '../plugin-api/index.ts'
import { variablesOf } from './run-inside.ts'
import type { Subject } from './subject.ts'

/**
 * Starts the program in the other sandbox that keeps things nobody else may reach, until the sandbox ends. Resolves to the names of the
 * things that it could make; the list is empty where threadbox's program is not inside. Rejects when it did not start.
 */
export async function startPeer(
  subject: Pick<Subject, 'hostDirectory' | 'secret' | 'peer' | 'signal'> & { other: Environment },
): Promise<readonly string[]> {
  const { other, peer } = subject
  if (!other.executable) return []
  const command = [...other.executable, 'probe', 'peer', peer]
  const child = await other.spawn({ command, env: variablesOf(subject) })
  child.exited.catch(() => {})
  const reader = child.stdout.getReader()
  let printed = ''
  while (!printed.includes('\n')) {
    const { value, done } = await reader.read()
    if (done)
      throw new Error(`the other sandbox did not start what it keeps: ${await new Response(child.stderr).text()}`)
    printed += Buffer.from(value)
  }
  reader.releaseLock()
  return printed.trim().split(' ').slice(1)
}
