import type { TlsFiles } from '../../core/config.ts'
import type { Log } from '../../core/runtime.ts'
import { messageOf } from '../../errors.ts'
import { readTlsPair, type TlsPair } from '../../start/tls-pair.ts'

/** The time between two looks. A renewal may replace files, links or directories, and reading them notices each of these. */
const LOOK_MS = 2000

/**
 * Reads the files of a pair from time to time, and calls `use` with each new pair that fits together. A fault is logged when two
 * looks in a row see it, because a certificate may be written before its key.
 */
export function watchPair(
  files: TlsFiles,
  first: TlsPair,
  log: Log,
  use: (pair: TlsPair) => Promise<void>,
): Disposable {
  let used = first
  let isUsing = false
  let lastProblem: string | undefined
  let loggedProblem: string | undefined

  const look = async () => {
    try {
      const pair = readTlsPair(files)
      lastProblem = undefined
      loggedProblem = undefined
      if (pair.cert === used.cert && pair.key === used.key) return
      // A pair that the server refuses is not tried again.
      used = pair
      await use(pair).then(
        () => log('new connections get the new certificate'),
        error => log(`--tls-cert: ${messageOf(error)}. The certificate from before stays in use`, 'error'),
      )
    } catch (error) {
      const problem = messageOf(error)
      if (problem === lastProblem && problem !== loggedProblem) {
        log(`${problem}. The certificate from before stays in use`, 'error')
        loggedProblem = problem
      }
      lastProblem = problem
    }
  }
  const timer = setInterval(() => {
    if (isUsing) return
    isUsing = true
    void look().finally(() => {
      isUsing = false
    })
  }, LOOK_MS)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
