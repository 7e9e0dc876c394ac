import { tailOf } from './stderr.ts'

const TIMEOUT_MS = 60_000

/** Directories of the system's programs: a service's PATH may lack sbin. */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Runs a program of the host with an empty environment; 0 ms is no limit. Rejects with the end of its stderr when it fails. */
export async function runProgram(command: readonly string[], timeoutMs = TIMEOUT_MS): Promise<string> {
  const child = Bun.spawn([...command], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    env: { PATH: SYSTEM_PATH, LC_ALL: 'C' },
    lazy: true,
    ...(timeoutMs > 0 && { timeout: timeoutMs, killSignal: 'SIGKILL' as const }),
  })
  const [output, problems, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (exitCode === 0) return output
  const reason = child.signalCode === 'SIGKILL' ? 'killed or timed out' : `exit ${exitCode}`
  throw new Error(tailOf(problems) || `${command[0] ?? ''}: ${reason}`)
}
