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

/** The completions for zsh, to be stored as `_threadbox` in its fpath, or sourced after compinit. */
export function zshCompletions(): string {
  const first = [...subjects].map(([subject, those]) => `      ${quote(`${subject}:${describeSubject(those)}`)}`)
  const nested = [...subjects].filter(([, those]) => hasActions(those))
  const second = nested.map(([subject, those]) => {
    const rows = those.map(({ name, help }) => quote(`${name.split(' ')[1]}:${help}`))
    return `      ${subject}) found=(${rows.join(' ')}) ;;`
  })
  return `#compdef threadbox
# Completions of threadbox for zsh. Made by: threadbox completions zsh
_threadbox() {
  local -a found
  local name=$words[2]
  if (( CURRENT == 2 )); then
    found=(
${first.join('\n')}
    )
  elif (( CURRENT == 3 )); then
    case $name in
${second.join('\n')}
    esac
  fi
  if (( $#found )); then
    _describe -t commands command found
    return
  fi
  case $name in
    ${nested.map(([subject]) => subject).join('|')}) name="$words[2] $words[3]"; shift 2 words; (( CURRENT -= 2 )) ;;
    *) shift words; (( CURRENT -= 1 )) ;;
  esac
  case $name in
${shownCommands.map(toCase).join('\n')}
  esac
}
if [[ $funcstack[1] == _threadbox ]]; then _threadbox "$@"; else compdef _threadbox threadbox; fi`
}

function toCase(command: Command): string {
  const specs = flagsOf(command).map(flag => {
    const kind = kindOf(flag)
    const help = flag.help.replaceAll(/[[\]\\]/g, '\\$&')
    const value = kind === undefined ? '' : `:${flag.value?.replaceAll(/[:\\]/g, '\\$&')}:${toAction(kind)}`
    return quote(`${flag.repeats ? '*' : ''}--${flag.name}${kind === undefined ? '' : '='}[${help}]${value}`)
  })
  const operands = quote(
    `*:${command.operands?.replaceAll(/[:\\]/g, '\\$&') ?? 'nothing'}:${toAction(kindOfOperands(command))}`,
  )
  return `    ${quote(command.name)}) _arguments ${[...specs, operands].join(' ')} ;;`
}

function toAction(kind: Kind): string {
  if (kind === 'file') return '_files'
  if (kind === 'directory') return '_files -/'
  // A message of one blank makes zsh offer nothing.
  return kind === 'value' ? ' ' : `(${kind.join(' ')})`
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
