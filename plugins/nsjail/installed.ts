import { mkdir } from 'node:fs/promises'
import { once } from '../../src/async/once.ts'
import { installGuest } from '../../src/guest/host/install.ts'
import { hostBase } from './files/host-base.ts'
import { baseDirectory, type Ground } from './host/layout.ts'
import { getNsjail, guestDirectory } from './host/programs.ts'

/** What jails are made with; each is brought at first need and then kept. */
export interface Supplies {
  nsjail(): Promise<string>
  /** Directory with the guest's executable and libraries. */
  guest(): Promise<string>
  /** The base made of the host. */
  hostBase(): Promise<string>
}

export interface SupplyOptions {
  nsjailPath?: string
  /** This program's executable, which is the guest too. */
  executable: string
}

export function createSupplies(ground: Ground, { nsjailPath, executable }: SupplyOptions): Supplies {
  return {
    nsjail: once(() => getNsjail(ground.dataDirectory, nsjailPath)),
    guest: once(async () => {
      const directory = await guestDirectory(ground.dataDirectory, executable)
      await installGuest(directory, executable)
      return directory
    }),
    hostBase: once(async () => {
      const parent = baseDirectory(ground.dataDirectory)
      await mkdir(parent, { recursive: true, mode: 0o700 })
      return hostBase(parent)
    }),
  }
}
