import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import type { TerminalSize } from '../../plugin-api/index.ts'
import { GuestError } from '../wire/requests.ts'
import type { Libc } from './libc.ts'

/** A new pseudo-terminal; the caller closes both ends. */
export interface Terminal {
  /** What its user types and sees. Does not block. */
  master: number
  slave: number
  /** Whoever leads a session without a terminal and opens this has it as its own. */
  path: string
}

/**
 * Opened by hand: a terminal of Bun's would load a library into the guest that the sandbox's files name, and cannot wait
 * for a slow reader. Throws a GuestError where no terminal can be had.
 */
export function openTerminal(libc: Libc, size: TerminalSize): Terminal {
  const { O_RDWR, O_NOCTTY, O_NONBLOCK } = constants
  let master: number | undefined
  let slave: number | undefined
  try {
    master = openSync('/dev/ptmx', O_RDWR | O_NOCTTY | O_NONBLOCK)
    const path = `/dev/pts/${libc.unlockTerminal(master)}`
    libc.resizeTerminal(master, size)
    slave = openSync(path, O_RDWR | O_NOCTTY)
    // The command opens it once more before it runs, which must not wait for anybody.
    if (!fstatSync(slave).isCharacterDevice()) throw new Error(`${path} is not a terminal`)
    return { master, slave, path }
  } catch {
    for (const fd of [master, slave]) if (fd !== undefined) closeSync(fd)
    throw new GuestError('sandbox_unavailable', 'The sandbox has no terminal left, or cannot open one.')
  }
}
