import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError } from '../../errors.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { listProcesses, startProcess, useProcesses } from '../sandboxes/processes.ts'

/** The program that starts the code interpreter, in templates that have one. */
const PROGRAM = '/opt/code-interpreter/start'
const NAME = 'code-interpreter'
/** How long the interpreter may take to open its port. */
const START_MS = 30_000
const LOOK_MS = 50

/**
 * Starts a sandbox's code interpreter unless it runs. Returns `closed` when it has ended or did not open its port in time, and
 * `absent` when the sandbox has no such program. Throws as `startProcess` does.
 */
export async function startInterpreter(
  runtime: Runtime,
  caller: Caller,
  { sandboxId, port }: { sandboxId: string; port: number },
  signal: AbortSignal,
): Promise<'open' | 'closed' | 'absent'> {
  using use = await useProcesses(runtime, caller, sandboxId)
  const { environment } = use
  const findRunning = async () =>
    (await listProcesses(runtime, use)).find(({ name, endedAt }) => name === NAME && endedAt === undefined)
  const isThere = await runtime.e2b.inTurn(sandboxId, async () => {
    if (await findRunning()) return true
    if (!(await environment.files.info(PROGRAM))) return false
    const stdio = { stdin: 'ignore', user: 'user', cwd: '/home/user' } as const
    await startProcess(runtime, caller, sandboxId, { command: [PROGRAM], name: NAME, ...stdio })
    return true
  })
  if (!isThere) return 'absent'
  for (const late = performance.now() + START_MS; performance.now() < late; await sleep(LOOK_MS)) {
    signal.throwIfAborted()
    if (await isOpen(environment, port)) return 'open'
    if (!(await findRunning())) break
  }
  return 'closed'
}

type Environment = Awaited<ReturnType<typeof useProcesses>>['environment']

async function isOpen(environment: Environment, port: number): Promise<boolean> {
  try {
    const stream = await environment.connect(port)
    stream.on('error', () => {})
    stream.destroy()
    return true
  } catch (error) {
    if (error instanceof ApiError && error.code === 'port_unreachable') return false
    throw error
  }
}
