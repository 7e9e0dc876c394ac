import { version } from '../../package.json'
import type { Flag } from '../read/arguments.ts'
import { settings } from '../start/settings.ts'
import type { Command } from './commands/command.ts'
import { commands } from './commands.ts'
import { wrap } from './help.ts'

/** The manual page, written for man(7). SOURCE_DATE_EPOCH sets its date, as in other builds; by default it is today. */
export function manualPage(): string {
  const epoch = process.env.SOURCE_DATE_EPOCH
  const day = (epoch ? new Date(Number(epoch) * 1000) : new Date()).toISOString().slice(0, 10)
  const shown = commands.filter(({ isInternal }) => !isInternal)
  return `.TH THREADBOX 1 ${day} "threadbox ${version}" "User Commands"
.SH NAME
threadbox \\- a runtime for AI agents
.SH SYNOPSIS
.B threadbox
.I COMMAND
.RI [ FLAGS ]
.SH DESCRIPTION
Threadbox keeps sandboxes, which are isolated environments with their own
files and processes, and threads, which are conversations in a sandbox.
It runs commands in a sandbox and streams the reply of an agent that works
there.
.PP
A flag is written
.BI \\-\\-name " value"
or
.BI \\-\\-name= value\\fR.
.B \\-\\-
ends the flags.
.SH COMMANDS
${shown.map(describe).join('\n')}
.SH SETTINGS
The server takes them as flags, as
.BI THREADBOX_ NAME
in the environment and as
.I name
in the file of
.BR \\-\\-config ,
in this order of strength.
${settings.map(toItem).join('\n')}
.SH FILES
.TP
.I /var/lib/threadbox
the data directory of root; that of others is
.IR ~/.local/share/threadbox .
.TP
.I /etc/threadbox/environment
the settings of the service, as variables.
.SH EXIT STATUS
0 when all went well, 1 when it did not, 2 for a mistake on the command line.
.B run
and
.B exec
say 125 when threadbox itself could not; otherwise
.B exec
ends as its command did.`
}

function describe(command: Command): string {
  const { name, operands, help, more, flags = [], settings: named, examples } = command
  const usage = `.SS threadbox ${toRoff(name)}${operands ? ` \\fI${toRoff(operands)}\\fR` : ''}`
  const text = `${help[0]?.toUpperCase()}${help.slice(1)}.${more ? ` ${more}` : ''}`
  const note =
    named === 'all'
      ? ['.PP', 'It takes every setting, see', '.BR SETTINGS .']
      : named
        ? [
            '.PP',
            `It takes the ${named.length === 1 ? 'setting' : 'settings'}`,
            `${named.map(each => `\\fB\\-\\-${toRoff(each)}\\fR`).join(', ')}.`,
          ]
        : []
  const lines = examples.flatMap(example => ['.PP', '.RS 4', '.nf', guard(toRoff(example)), '.fi', '.RE'])
  return [usage, paragraph(text), ...flags.map(toItem), ...note, ...lines].join('\n')
}

function toItem({ name, value, default: fallback, help, repeats }: Flag): string {
  // The default for root is shown, because the page is built on another machine than it is read on.
  const usual = name === 'data-dir' ? 'see FILES' : fallback
  const notes = [...(usual === undefined ? [] : [`default: ${usual}`]), ...(repeats ? ['again for more'] : [])]
  const head = `.TP\n\\fB\\-\\-${toRoff(name)}\\fR${value ? ` \\fI${toRoff(value)}\\fR` : ''}`
  return `${head}\n${paragraph(`${help}${notes.length > 0 ? ` (${notes.join('; ')})` : ''}`)}`
}

const paragraph = (text: string): string => wrap(toRoff(text), 78).map(guard).join('\n')

const names: Readonly<Record<string, string>> = { '\\': '\\e', '-': '\\-', '…': '...', '’': "'" }

const toRoff = (text: string): string => text.replaceAll(/[\\\-…’]/g, sign => names[sign] ?? sign)

/** A line that begins with a control character of the language is ordinary text all the same. */
const guard = (line: string): string => (/^[.']/.test(line) ? `\\&${line}` : line)
