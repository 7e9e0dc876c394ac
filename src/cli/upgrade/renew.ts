import { readFileSync } from 'node:fs'

/** Asks a server to end in order, and to begin anew in the same process from what is at its executable's path then. */
export const RENEW_SIGNAL = 'SIGUSR2'

/** Its number in the masks of /proc. */
const RENEW_BIT = 1n << 11n

/**
 * Returns a function that begins this process anew: its number, parent, terminal, arguments and variables stay. Call `prepareRenewal`
 * before the executable may have been replaced. The function returns only when Linux refuses.
 */
export function prepareRenewal(): () => void {
  const path = process.execPath
  const words = readWords('/proc/self/cmdline')
  // Those it was started with: some are removed from process.env, so that no child gets them.
  const variables = Object.fromEntries(
    readWords('/proc/self/environ').map(each => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)]),
  )
  return () => process.execve?.(path, words, variables)
}

/** Whether a process would begin anew. Another one would be killed by the signal. */
export function canRenew(pid: number): boolean {
  const [, mask = '0'] = /^SigCgt:\s*(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return (BigInt(`0x${mask}`) & RENEW_BIT) !== 0n
}

/** The words of a list in /proc, each of which ends with a zero. */
export const readWords = (path: string): string[] => readFileSync(path, 'utf8').split('\0').slice(0, -1)
