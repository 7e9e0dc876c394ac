import { plugin } from 'bun'
import { runCommand } from '../environment/run-command.ts'
import { ApiError, messageOf } from '../errors.ts'
import { connectGuest } from '../guest/host/connect.ts'
import { executableInside, guestCommand, installGuest } from '../guest/host/install.ts'

let isProvided = false

/** Makes `import … from 'threadbox'` work in the files of plugins. A virtual module belongs to the process. */
export function provideModule(guestExecutable: string): void {
  if (isProvided) return
  isProvided = true
  const exports: typeof import('./helpers.ts') = {
    ApiError,
    messageOf,
    runShell: runCommand,
    connectGuest,
    installGuest: directory => installGuest(directory, guestExecutable),
    guestCommand,
    executableInside,
  }
  plugin({
    name: 'threadbox',
    setup: build => void build.module('threadbox', () => ({ exports, loader: 'object' })),
  })
}
