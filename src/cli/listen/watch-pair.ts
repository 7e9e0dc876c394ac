import type { TlsFiles } from '../../core/config.ts'
import type { Log } from '../../core/runtime.ts'
import { messageOf } from '../../errors.ts'
import { readTlsPair, type TlsPair } from '../../start/tls-pair.ts'

/** Whoever renews a certificate replaces files, links or directories: reading them sees each of these. */
const LOOK_MS = 2000

/**
 * Looks at the files of a pair from time to time, and calls `use` with each new one that is whole. What is wrong is logged
 * when it is so for two looks: a certificate may be there before its key.
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
      // Not tried again and again when the server does not take it.
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
