import { close, constants, fstatSync, openSync, type Stats } from 'node:fs'
import { type Descriptor, ownDescriptor } from '../../descriptor.ts'

/** The descriptors of a guest on this machine, for a server that may copy them. */
export interface GuestDescriptors {
  /** Copies the guest's descriptor of this number into this process. Throws when it has no such descriptor. */
  take(number: number): Descriptor
  /** How many bytes wait in a pipe that was copied. */
  pendingBytes(descriptor: number): number
  /** Lets more bytes wait in a pipe that was copied, as far as Linux allows. */
  widenPipe(descriptor: number): void
  /** The length that Linux lets the guest give a file. Writers for the guest keep to it. Undefined when it cannot be read now. */
  maxFileBytes(): number | undefined
  close(): void
}

const isKind = {
  file: (stats: Stats) => stats.isFile(),
  pipe: (stats: Stats) => stats.isFIFO(),
  socket: (stats: Stats) => stats.isSocket(),
}

const MAX_NUMBER = 0x7fffffff

/**
 * Takes the descriptor that a guest names. Throws when the number is no descriptor's of the guest, or the descriptor is of another
 * kind; the guest has broken the protocol then.
 *
 * A guest may have been taken over. It keeps the descriptor too, so it can change its flags, position, size and content at any
 * time: read and write at positions, and never wait for a pipe or a socket on the event loop because it was said not to block.
 * All that it can name are files that the sandbox itself has open.
 */
export function takeDescriptor(from: GuestDescriptors, number: unknown, kind: keyof typeof isKind): Descriptor {
  if (typeof number !== 'number' || !Number.isInteger(number) || number < 0 || number > MAX_NUMBER)
    throw new Error('a descriptor without a number')
  const taken = from.take(number)
  if (isKind[kind](fstatSync(taken.number))) return taken
  // A socket may be set to wait for its peer when it is closed, so that it must not be closed on the event loop.
  close(taken.number, () => {})
  throw new Error(`a descriptor that is no ${kind}`)
}

/**
 * Takes the reading end of a pipe that the guest names. It is opened anew: whether a read of it waits is then for this process
 * alone to say. Undefined when it is no pipe, or cannot be taken.
 */
export function takePipe(from: GuestDescriptors, number: unknown): Descriptor | undefined {
  try {
    const taken = takeDescriptor(from, number, 'pipe')
    try {
      const flags = constants.O_RDONLY | constants.O_NONBLOCK
      return ownDescriptor(openSync(`/proc/self/fd/${taken.number}`, flags))
    } finally {
      taken.close()
    }
  } catch {
    return undefined
  }
}
