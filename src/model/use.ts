/** What a sandbox uses at a moment. An absent field: its backend does not tell. */
export interface Use {
  /** Milliseconds since 1970. */
  at: number
  memoryBytes?: number
  diskBytes?: number
  /** CPU cores in use, in fractions. */
  cpus?: number
  /** Processes and their threads. */
  processes?: number
}
