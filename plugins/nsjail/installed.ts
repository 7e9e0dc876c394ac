import { mkdir } from 'node:fs/promises'
import { once } from '../../src/async/once.ts'
import { installGuest } from '../../src/guest/host/install.ts'
import { hostBase } from './files/host-base.ts'
import { type Host, hostBaseDirectory } from './host/layout.ts'
import { getNsjail, guestDirectory } from './host/programs.ts'

/** The programs and the base that jails are made with. Each is installed at the first call and then remembered. */
export interface Installed {
  nsjail(): Promise<string>
  /** Directory with the guest's executable and libraries. */
  guest(): Promise<string>
  hostBase(): Promise<string>
}

export interface InstalledOptions {
  nsjailPath?: string
  /** This program's executable, which is the guest too. */
  executable: string
}

export function createInstalled(host: Host, { nsjailPath, executable }: InstalledOptions): Installed {
  return {
    nsjail: once(() => getNsjail(host.dataDirectory, nsjailPath)),
    guest: once(async () => {
      const directory = await guestDirectory(host.dataDirectory, executable)
      await installGuest(directory, executable)
      return directory
    }),
    hostBase: once(async () => {
      const parent = hostBaseDirectory(host.dataDirectory)
      await mkdir(parent, { recursive: true, mode: 0o700 })
      return hostBase(parent)
    }),
  }
}
