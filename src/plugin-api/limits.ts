/** What one sandbox may use. An absent field: the backend does not limit it. */
export interface Limits {
  memoryMb?: number
  processes?: number
  /** CPU cores, in fractions. */
  cpus?: number
  diskMb?: number
}
