import { flagsOf, hasActions, type Kind, kindOf, kindOfOperands, shownCommands, subjects } from './shapes.ts'

/**
 * The completions for bash, which need no other package. Each flag is written with the kind of its value, as in
 * `--root:directory`.
 */
export function bashCompletions(): string {
  const nested = [...subjects].filter(([, those]) => hasActions(those))
  const actions = nested.map(([subject, those]) => {
    const words = those.map(({ name }) => name.split(' ')[1])
    return `    ${subject}) ((COMP_CWORD > 2)) || words='${words.join(' ')}' ;;`
  })
  const rows = shownCommands.map(command => {
    const { name } = command
    const flags = flagsOf(command).map(flag => {
      const kind = kindOf(flag)
      return `--${flag.name}${kind === undefined ? '' : `:${write(kind)}`}`
    })
    const operands = kindOfOperands(command)
    const pattern = name.includes(' ') ? `'${name}'` : `'${name} '*`
    return `    ${pattern}) flags='${flags.join(' ')}' operands='${write(operands)}' ;;`
  })
  return `# Completions of threadbox for bash. Made by: threadbox completions bash
_threadbox() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  local flag=$previous flags= operands=value kind= words= each
  # In --flag=value, bash takes the = for a word of its own.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    flag=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then words='${[...subjects.keys()].join(' ')}'; fi
  case \${COMP_WORDS[1]} in
${actions.join('\n')}
  esac
  if [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    return
  fi
  case "\${COMP_WORDS[1]} \${COMP_WORDS[2]}" in
${rows.join('\n')}
  esac
  for each in $flags; do
    words+=" \${each%%:*}"
    if [[ $each == "$flag":* ]]; then kind=\${each#*:}; fi
  done
  if [[ -z $kind && $current == -* ]]; then kind=$(tr -s ' ' '|' <<<"$words"); fi
  case \${kind:-$operands} in
    file) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    directory) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    value) return ;;
    *)
      kind=\${kind:-$operands}
      mapfile -t COMPREPLY < <(compgen -W "\${kind//|/ }" -- "$current")
      return
      ;;
  esac
  compopt -o filenames 2>/dev/null
}
complete -F _threadbox threadbox`
}

const write = (kind: Kind): string => (typeof kind === 'string' ? kind : kind.join('|'))
