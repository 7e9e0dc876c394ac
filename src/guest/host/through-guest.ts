import type { Environment } from '../../plugin-api/index.ts'
import type { GuestConnection } from './connect.ts'

/** Gives the action a connected guest; it is connected first when it is not. */
export type Use = <T>(action: (guest: GuestConnection) => Promise<T>) => Promise<T>

/** The part of an environment that its guest carries out. */
export const environmentOverGuest = (
  use: Use,
): Required<Pick<Environment, 'spawn' | 'connect' | 'processes' | 'files' | 'openSshAgent'>> => ({
  spawn: options => use(guest => guest.spawn(options)),
  connect: port => use(guest => guest.connect(port)),
  openSshAgent: () => use(guest => guest.openSshAgent()),
  processes: {
    start: options => use(guest => guest.processes.start(options)),
    list: () => use(guest => guest.processes.list()),
    get: pid => use(guest => guest.processes.get(pid)),
    read: (pid, offset, options) => use(guest => guest.processes.read(pid, offset, options)),
    write: (pid, bytes, signal) => use(guest => guest.processes.write(pid, bytes, signal)),
    closeStdin: pid => use(guest => guest.processes.closeStdin(pid)),
    signal: (pid, name) => use(guest => guest.processes.signal(pid, name)),
    resize: (pid, size) => use(guest => guest.processes.resize(pid, size)),
    remove: pid => use(guest => guest.processes.remove(pid)),
  },
  files: {
    read: (path, signal) => use(guest => guest.files.read(path, signal)),
    write: (path, body, signal, details) => use(guest => guest.files.write(path, body, signal, details)),
    info: (path, options) => use(guest => guest.files.info(path, options)),
    list: (path, depth, options) => use(guest => guest.files.list(path, depth, options)),
    makeDirectory: (path, details) => use(guest => guest.files.makeDirectory(path, details)),
    rename: (from, to) => use(guest => guest.files.rename(from, to)),
    remove: path => use(guest => guest.files.remove(path)),
    watch: (path, options) => use(guest => guest.files.watch(path, options)),
  },
})
