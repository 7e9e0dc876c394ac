import { readFileSync } from 'node:fs'

/**
 * The signal that asks a server to end in order, and then to start anew, in the same process, from the file at its executable's
 * path.
 */
export const RENEW_SIGNAL = 'SIGUSR2'

/** The signal's bit in the masks of /proc. */
const RENEW_BIT = 1n << 11n

/**
 * Returns a function that starts this process anew with the same pid, parent, terminal, arguments and variables. Call
 * `prepareRenewal` before the executable may have been replaced. The returned function comes back only when Linux refuses.
 */
export function prepareRenewal(): () => void {
  const path = process.execPath
  const words = readWords('/proc/self/cmdline')
  // The variables that the process was started with: some are removed from process.env, so that no child gets them.
  const variables = Object.fromEntries(
    readWords('/proc/self/environ').map(each => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)]),
  )
  return () => process.execve?.(path, words, variables)
}

/** Whether a process starts anew at the signal. The signal would kill any other process. */
export function canRenew(pid: number): boolean {
  const [, mask = '0'] = /^SigCgt:\s*(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return (BigInt(`0x${mask}`) & RENEW_BIT) !== 0n
}

/** Reads a list of words from /proc, where a zero ends each. */
export const readWords = (path: string): string[] => readFileSync(path, 'utf8').split('\0').slice(0, -1)
