/** The exit code when threadbox itself failed, rather than the command or the agent. */
export const FAILED = 125

const numbers = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const
const SIGPIPE = 13

export interface Stop {
  /** Aborts at SIGINT, SIGTERM and SIGHUP, and when the reader of stdout has left. */
  signal: AbortSignal
  /** The code to exit with; undefined unless the signal has aborted. */
  exitCode(): number | undefined
  close(): void
}

/** The first signal ends the work. A second one exits at once, and the guard cleans up. */
export function listenForStop(): Stop {
  const abort = new AbortController()
  let code: number | undefined
  const stop = (name: NodeJS.Signals) => {
    if (code !== undefined) process.exit(code)
    code = 128 + numbers[name as keyof typeof numbers]
    abort.abort()
  }
  const left = (error: NodeJS.ErrnoException) => {
    const hasLeft = error.code === 'EPIPE'
    if (!hasLeft && code === undefined) console.error(`threadbox: stdout: ${error.message}`)
    code ??= hasLeft ? 128 + SIGPIPE : FAILED
    abort.abort()
  }
  for (const name of Object.keys(numbers)) process.on(name, stop)
  process.stdout.on('error', left)
  return {
    signal: abort.signal,
    exitCode: () => code,
    close() {
      for (const name of Object.keys(numbers)) process.off(name, stop)
    },
  }
}
