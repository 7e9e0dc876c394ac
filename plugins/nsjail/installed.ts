import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { once } from '../../src/async/once.ts'
import { guestVersion, installGuest } from '../../src/guest/host/install.ts'
import { hostBase } from './files/host-base.ts'
import { installEmbedded } from './host/embedded.ts'
import { baseDirectory, type Ground } from './host/layout.ts'

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
    nsjail: once(() => findNsjail(ground.dataDirectory, nsjailPath)),
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

/** Where the guest of this build is. */
export const guestDirectory = async (dataDirectory: string, executable: string): Promise<string> =>
  join(dataDirectory, 'guest', await guestVersion(executable))

/** The nsjail executable: the one that was asked for, the embedded one, or the one on the PATH. */
export async function findNsjail(dataDirectory: string, nsjailPath?: string): Promise<string> {
  if (nsjailPath !== undefined) return resolve(nsjailPath)
  const path = (await installEmbedded(dataDirectory)) ?? Bun.which('nsjail')
  if (!path) throw new Error('nsjail is not on the PATH, not embedded in this build, and no path of it was given')
  return path
}
