import type { ToolContext } from './tool.ts'

/**
 * Starts a command that outlives its call, and also its run when that completes; a cancelled run kills it. Its output goes to
 * a file in the sandbox.
 */
export async function startInBackground(command: string, context: ToolContext): Promise<string> {
  const { environment, cwd, env, signal } = context
  const id = crypto.randomUUID().slice(0, 8)
  const log = `/tmp/background-${id}.log`
  const child = await environment.spawn({
    command: 'exec >"$THREADBOX_LOG" 2>&1; unset THREADBOX_LOG; eval "$THREADBOX_COMMAND"',
    cwd,
    env: { ...env, THREADBOX_LOG: log, THREADBOX_COMMAND: command },
    signal,
  })
  child.exited.catch(() => {})
  // All output goes to the file.
  void child.stdout.cancel()
  void child.stderr.cancel()
  return `Command running in background with ID: ${id}. Output is being written to: ${log}\nStop it with: kill ${child.pid}`
}
