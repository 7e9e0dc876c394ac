import { oneOff, replyAlone, verbose } from '../common-flags.ts'
import type { Command } from './command.ts'

/** Commands that use a sandbox without a server. */
export const oneOffCommands: readonly Command[] = [
  {
    name: 'run',
    operands: '[PROMPT…]',
    help: 'give an agent one prompt in a sandbox, without a server',
    more: `Without a prompt it is read from a pipe. Exit code: 0, 1 when the reply failed, 2 for a mistake in the flags, 125 when \
threadbox itself could not. Nothing of the sandbox is left.`,
    flags: [
      { name: 'agent', value: 'AGENT', default: 'coder', help: "a slug, or an agent's file" },
      ...oneOff,
      { name: 'approve', value: 'HOW', help: 'all, none, or ask: what becomes of calls that want an approval' },
      { name: 'json', help: 'a line of JSON for each chunk of the reply' },
      replyAlone,
      verbose,
    ],
    settings: 'all',
    examples: ["threadbox run --file .=work --out work=fixed 'The tests of work/ fail. Fix them.'"],
  },
  {
    name: 'exec',
    operands: 'COMMAND…',
    help: 'run a command in a sandbox, without a server',
    more: `One word is a line of the shell, several are a program and its arguments; put -- before them. The exit code is the \
command's, 2 for a mistake in the flags, 125 when threadbox itself could not. Nothing of the sandbox is left.`,
    flags: [
      { name: 'agent', value: 'AGENT', default: 'echo', help: "a slug, or an agent's file" },
      ...oneOff,
      { name: 'json', help: 'a line of JSON for each piece of output, and for the exit code' },
      verbose,
    ],
    settings: 'all',
    examples: ["threadbox exec --file .=work -- 'cd work && sh test.sh'"],
  },
]
