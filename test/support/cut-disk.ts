import { dlopen, FFIType } from 'bun:ffi'
import { closeSync, globSync, mkdirSync, mkdtempSync, openSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readText } from './leftovers.ts'
import { until } from './until.ts'

const SHUTDOWN = 0x8004587d
const WITHOUT_FLUSH = new Uint32Array([2])

/**
 * A file system of its own that can be cut off, as by a loss of power: what was not synced is gone, and whatever uses it
 * fails. ext4's own call for this kind of test does it, and commits as rarely as a mount can be told to.
 */
export class CutDisk implements AsyncDisposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'threadbox-cut-'))
  readonly path = join(this.#directory, 'mount')
  readonly #image = join(this.#directory, 'disk.img')

  constructor(sizeMb: number) {
    writeFileSync(this.#image, '')
    truncateSync(this.#image, sizeMb * 1024 * 1024)
    mkdirSync(this.path)
    run('mkfs.ext4', '-q', '-F', '-m', '0', this.#image)
    this.#mount()
  }

  #mount(): void {
    // Neither the journal nor the kernel's own writing may save what nobody has synced.
    run('mount', '-o', 'loop,commit=300,noauto_da_alloc', this.#image, this.path)
  }

  /** From here on nothing comes to the disk any more. */
  cut(): void {
    const libc = dlopen('libc.so.6', {
      ioctl: { args: [FFIType.i32, FFIType.u64, FFIType.ptr], returns: FFIType.i32 },
    })
    const descriptor = openSync(this.path, 'r')
    try {
      if (libc.symbols.ioctl(descriptor, SHUTDOWN, WITHOUT_FLUSH) !== 0)
        throw new Error('the disk could not be cut off')
    } finally {
      closeSync(descriptor)
      libc.close()
    }
  }

  /** Power is back: the journal is replayed. Nothing may use the disk any more. */
  async restart(): Promise<void> {
    // Another namespace that was made meanwhile may hold on to what was cut off: then that is what is mounted again.
    await until(async () => {
      await this.#unmount()
      this.#mount()
      return this.#isAlive()
    })
  }

  #isAlive(): boolean {
    try {
      rmSync(join(this.path, 'lost+found'), { recursive: true, force: true })
      mkdirSync(join(this.path, 'lost+found'))
      return true
    } catch {
      return false
    }
  }

  /** What ended a moment ago may still let go of its files. */
  async #unmount(): Promise<void> {
    await until(() => Bun.spawnSync(['umount', this.path]).exitCode === 0)
    const devices = () => globSync('/sys/block/loop*/loop/backing_file').map(readText)
    await until(() => !devices().some(file => file.includes(this.#image)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#unmount()
    rmSync(this.#directory, { recursive: true })
  }
}

function run(...command: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(command, { stderr: 'pipe' })
  if (exitCode !== 0) throw new Error(`${command.join(' ')}: ${stderr}`)
}
