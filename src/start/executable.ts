import { join } from 'node:path'

/** True in the built executable, false when Bun runs the source. */
export const isBuilt = import.meta.dir.startsWith('/$bunfs/')

/** The executable that sandboxes get as their guest: this one, or the last build when Bun runs the source. */
export const guestExecutable: string = isBuilt ? process.execPath : join(import.meta.dir, '../../dist/threadbox')
