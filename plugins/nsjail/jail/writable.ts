import { readFile } from 'node:fs/promises'
import { listChildren } from './jail.ts'

/** The kernel has mounted an overlay read-only, because it could not use the overlay's work directory. */
export class ReadOnlyOverlay extends Error {
  constructor(path: string) {
    super(`${path} in the sandbox could only be mounted read-only`)
  }
}

/** Throws ReadOnlyOverlay when an overlay of the jail is read-only although it has an upper layer. */
export async function assertWritable(nsjail: number): Promise<void> {
  for (const pid of await listChildren(nsjail)) {
    const mounts = (await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '')).split('\n')
    for (const mount of mounts) {
      const [mountPoint = '', source = ''] = mount.split(' - overlay ')
      if (!source) continue
      const [path, options] = [mountPoint.split(' ')[4] ?? '', source.split(' ')[1] ?? '']
      if (options.split(',')[0] === 'ro' && options.includes('upperdir=')) throw new ReadOnlyOverlay(path)
    }
  }
}
