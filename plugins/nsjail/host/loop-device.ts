import { ptr } from 'bun:ffi'
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { type Descriptor, ownDescriptor } from '../../../src/descriptor.ts'
import { checked, LinuxError, libc } from './libc.ts'

const LOOP_CTL_GET_FREE = 0x4c82
const LOOP_CONFIGURE = 0x4c0a
/** With this flag the device releases its image when its last user has gone. */
const LO_FLAGS_AUTOCLEAR = 4
/** `struct loop_config`: the image's descriptor, a block size, `struct loop_info64`, room. */
const CONFIG_BYTES = 304
const FLAGS_AT = 60
const NAME_AT = 64
const NAME_BYTES = 64
const ATTEMPTS = 100

/** A loop device that holds an image as long as the descriptor is open or the device is mounted. */
export interface LoopDevice {
  /** The device's name in /sys/block. */
  name: string
  descriptor: Descriptor
}

/**
 * Gives an image to a free loop device. To be called when no other device has it, unless all of them only read: two would corrupt it.
 */
export function attachLoop(image: string, { readOnly = false } = {}): LoopDevice {
  const control = openSync('/dev/loop-control', 'r+')
  try {
    for (let attempt = 1; ; attempt++) {
      const name = `loop${checked('a free loop device', libc().ioctl(control, LOOP_CTL_GET_FREE, 0))}`
      try {
        return { name, descriptor: configure(name, image, readOnly) }
      } catch (error) {
        // Another process took the device first.
        if (!(error instanceof LinuxError && error.code === 'EBUSY') || attempt === ATTEMPTS) throw error
      }
    }
  } finally {
    closeSync(control)
  }
}

function configure(name: string, image: string, readOnly: boolean): Descriptor {
  const device = ownDescriptor(openSync(`/dev/${name}`, 'r+'))
  // A device of a file that is open for reading can only be read.
  const file = openSync(image, readOnly ? 'r' : 'r+')
  try {
    const config = Buffer.alloc(CONFIG_BYTES)
    config.writeUInt32LE(file, 0)
    config.writeUInt32LE(LO_FLAGS_AUTOCLEAR, FLAGS_AT)
    // The name is for people who list the devices.
    Buffer.from(image).copy(config, NAME_AT, 0, NAME_BYTES - 1)
    checked(`loop device for ${image}`, libc().ioctl(device.number, LOOP_CONFIGURE, ptr(config)))
    return device
  } catch (error) {
    device.close()
    throw error
  } finally {
    closeSync(file)
  }
}

/** The real path of a loop device's image; empty when it has none. */
export function readImageOf(name: string): string {
  const file = `/sys/block/${name}/loop/backing_file`
  try {
    // A free device has no such file, and an exception would be slow.
    return existsSync(file) ? readFileSync(file, 'utf8').trimEnd() : ''
  } catch {
    return ''
  }
}

export const listLoopDevices = (): string[] =>
  existsSync('/sys/block') ? readdirSync('/sys/block').filter(name => name.startsWith('loop')) : []
