import { makeNetwork } from '../host/network-namespace.ts'
import { runProgram } from '../host/run-program.ts'
import { redirect } from '../jail/direct-listener.ts'

const WITHIN_MS = 5000

/** Redirects a network that is made for this check, and removes it. Throws an error that says what the kernel lacks. */
export function tryRedirect(): void {
  const network = makeNetwork()
  try {
    redirect(network)
  } finally {
    network.close()
  }
}

/** Redirects the network of a jail, which its server may change. Takes as long as a program's start. Rejects with what the kernel lacks. */
export const tryRedirectInJail = (nsjail: string, executable: string): Promise<unknown> =>
  runProgram([nsjail, '-Mo', '-Q', '--chroot', '/', '--keep_caps', '--', executable, 'guest', 'redirect'], WITHIN_MS)
