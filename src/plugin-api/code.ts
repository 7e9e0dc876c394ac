/** Code cells, as in a notebook. Cells of one language and directory share their variables. */
export interface EnvironmentCode {
  /** Whether cells can be run here: not every template of a backend has what it takes. */
  isThere(): Promise<boolean>
  run(code: string, options: RunCodeOptions): Promise<CodeResult>
}

export interface RunCodeOptions {
  /** Python unless given. */
  language?: string
  /** Absolute; /home/user when absent. */
  cwd?: string
  env?: Readonly<Record<string, string>>
  /** Then the cell is stopped, its variables are lost, and it rejects with command_timeout. */
  timeoutMs?: number
  /** Aborted: the same, with its reason. */
  signal?: AbortSignal
}

/** What a code cell came to. */
export interface CodeResult {
  stdout: string
  stderr: string
  /** What it shows, in the order of its making: the value of its last expression, charts. */
  results: { text?: string; images: { mediaType: string; data: string }[] }[]
  /** The cell ended by it. */
  error?: { name: string; value: string; traceback: string }
}
