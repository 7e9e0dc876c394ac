import type { Command } from '../commands/command.ts'
import {
  describeSubject,
  flagsOf,
  hasActions,
  type Kind,
  kindOf,
  kindOfOperands,
  shownCommands,
  subjects,
} from './shapes.ts'

/** The completions for fish, to be sourced or stored as `threadbox.fish`. */
export function fishCompletions(): string {
  const first = [...subjects].map(
    ([subject, those]) => `${complete('')} -a ${subject} -d ${quote(describeSubject(those))}`,
  )
  const second = [...subjects]
    .filter(([, those]) => hasActions(those))
    .flatMap(([subject, those]) =>
      those.map(({ name, help }) => `${complete(subject)} -a ${name.split(' ')[1]} -d ${quote(help)}`),
    )
  return `# Completions of threadbox for fish. Made by: threadbox completions fish
# True when just these words have been written.
function __threadbox_at
    set -l words (commandline -opc)
    test "$words[2..]" = "$argv"
end
# True behind a command, whatever follows it.
function __threadbox_in
    set -l words (commandline -opc)
    test (count $words) -gt (count $argv); and test "$words[2..$(math 1 + (count $argv))]" = "$argv"
end
complete -c threadbox -f
${[...first, ...second, ...shownCommands.flatMap(toLines)].join('\n')}`
}

const complete = (words: string): string => `complete -c threadbox -n '__threadbox_at ${words}'`

function toLines(command: Command): string[] {
  const within = `complete -c threadbox -n '__threadbox_in ${command.name}'`
  const flags = flagsOf(command).map(flag => {
    const kind = kindOf(flag)
    return `${within} -l ${flag.name}${kind === undefined ? '' : ` ${toAction(kind)}`} -d ${quote(flag.help)}`
  })
  const operands = kindOfOperands(command)
  return operands === 'value' ? flags : [...flags, `${within} ${toAction(operands)}`]
}

function toAction(kind: Kind): string {
  if (kind === 'file') return '-r -F'
  if (kind === 'directory') return "-x -a '(__fish_complete_directories)'"
  return kind === 'value' ? '-x' : `-x -a ${quote(kind.join(' '))}`
}

const quote = (text: string): string => `'${text.replaceAll(/['\\]/g, '\\$&')}'`
