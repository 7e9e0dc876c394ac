/**
 * Code cells, as in a notebook. Cells of one language and directory share their variables.
 *
 * @example
 * const { results, error } = await environment.code.run('sum(range(10))', { timeoutMs: 30_000 })
 */
export interface EnvironmentCode {
  /** Resolves to false when this environment has no interpreter, as with some templates of a backend. */
  isThere(): Promise<boolean>
  run(code: string, options: RunCodeOptions): Promise<CodeResult>
}

export interface RunCodeOptions {
  /** Python when absent. */
  language?: string
  /** Absolute; /home/user when absent. */
  cwd?: string
  env?: Readonly<Record<string, string>>
  /** After this time the cell is stopped, its variables are lost, and it rejects with command_timeout. */
  timeoutMs?: number
  /** An abort stops the cell in the same way and rejects with the signal's reason. */
  signal?: AbortSignal
}

/** The outcome of a code cell. */
export interface CodeResult {
  stdout: string
  stderr: string
  /** What the cell shows, in the order in which it was made: the value of its last expression, charts. */
  results: { text?: string; images: { mediaType: string; data: string }[] }[]
  /** The error that ended the cell. */
  error?: { name: string; value: string; traceback: string }
}
