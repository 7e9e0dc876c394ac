import { join } from 'node:path'

/** True in the built executable, false when Bun runs the source. */
const isBuilt = import.meta.dir.startsWith('/$bunfs/')

/**
 * The file that starts this program. When Bun runs the source, it is the program's own first file, also in a script that imports parts of
 * the program: a new process must not start such a script, which would start itself again and again.
 */
export const mainFile: string = isBuilt ? Bun.main : join(import.meta.dir, '../main.ts')

/** Returns the command line that runs this program with these words. */
export const commandOf = (...words: string[]): string[] => [process.execPath, ...(isBuilt ? [] : [mainFile]), ...words]

/** The executable that sandboxes get as their guest: this one, or the last build when Bun runs the source. */
export const guestExecutable: string = isBuilt ? process.execPath : join(import.meta.dir, '../../dist/threadbox')
