import { join, resolve } from 'node:path'
import { guestVersion } from '../../../src/guest/host/install.ts'
import { installEmbedded } from './embedded.ts'

/** The directory of this build's guest, which may not be there yet. */
export const guestDirectory = async (dataDirectory: string, executable: string): Promise<string> =>
  join(dataDirectory, 'guest', await guestVersion(executable))

/** The nsjail executable: the configured one, else the embedded one, else the one on the PATH. Throws when there is none. */
export async function getNsjail(dataDirectory: string, nsjailPath?: string): Promise<string> {
  if (nsjailPath !== undefined) return resolve(nsjailPath)
  const path = (await installEmbedded(dataDirectory)) ?? Bun.which('nsjail')
  if (!path) throw new Error('nsjail is not on the PATH, not embedded in this build, and not named by --nsjail-path')
  return path
}
