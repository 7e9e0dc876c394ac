import { auditCommands } from './commands/audit.ts'
import { backupCommands } from './commands/backup.ts'
import { clientCommands } from './commands/client.ts'
import type { Command } from './commands/command.ts'
import { dataCommands } from './commands/data.ts'
import { oneOffCommands } from './commands/one-off.ts'
import { serverCommands } from './commands/server.ts'

/** Every command, grouped by subject. */
export const commands: readonly Command[] = [
  ...serverCommands,
  ...dataCommands,
  ...backupCommands,
  ...auditCommands,
  ...clientCommands,
  ...oneOffCommands,
  {
    name: 'plugin test',
    operands: 'FILE',
    help: 'run the contract suites on a plugin',
    settings: 'all',
    examples: ['threadbox plugin test script.ts'],
  },
  {
    name: 'plugin types',
    help: "print the types for a plugin author's editor",
    examples: ['threadbox plugin types > threadbox.d.ts'],
  },
  { name: 'version', help: 'print the version', examples: ['threadbox version'] },
  { name: 'licenses', help: 'print the notices of what is embedded', examples: ['threadbox licenses'] },
  {
    name: 'help',
    operands: '[COMMAND…]',
    help: 'print all commands, or the help of one',
    examples: ['threadbox help keys create'],
  },
  {
    name: 'completions',
    operands: 'bash|zsh|fish',
    help: "print a shell's completions of these commands and flags",
    examples: ['threadbox completions bash > /etc/bash_completion.d/threadbox'],
  },
  { name: 'man', help: 'print the manual page', examples: ['threadbox man | man --local-file -'] },
  { name: 'guest', help: 'runs inside a sandbox; the server starts it', examples: [], isInternal: true },
  { name: 'tools', help: "runs an agent's own tools inside a sandbox", examples: [], isInternal: true },
  { name: 'probe', help: 'tries to get out of a sandbox; selftest starts it inside', examples: [], isInternal: true },
  { name: 'bench-peer', help: 'the bare server that bench compares with', examples: [], isInternal: true },
  { name: 'guard', help: 'cleans up after a killed run, exec, bench or selftest', examples: [], isInternal: true },
]
