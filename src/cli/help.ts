import type { Flag } from '../read/arguments.ts'
import { describeUsage, findCommands, listSettings, unknownCommand } from './command-line.ts'
import type { Command } from './commands/command.ts'
import { commands } from './commands.ts'

const WIDTH = 80
/** The largest width of the first column. */
const SECOND = 28

/** Help for the commands whose name begins with these words; without words, for all commands. Throws a UsageError. */
export function help(words: readonly string[]): string {
  if (words.length === 0) return overview()
  const found = findCommands(words)
  const [first, ...others] = found
  if (!first) throw unknownCommand(words)
  return others.length === 0 ? describe(first) : describeSubject(words[0] ?? '', found)
}

function overview(): string {
  const rows = (those: readonly Command[]) => table(those.map(each => [shortName(each), each.help]))
  return `threadbox: a runtime for AI agents

usage: threadbox COMMAND [FLAGS]

${rows(commands.filter(({ isInternal }) => !isInternal))}

what threadbox starts itself:

${rows(commands.filter(({ isInternal }) => isInternal))}

threadbox COMMAND --help shows what a command takes, with an example;
threadbox serve --help shows every setting.`
}

/** A command's name and its required operands. */
const shortName = ({ name, operands = '' }: Command): string => `${name} ${operands}`.trimEnd()

function describeSubject(subject: string, those: readonly Command[]): string {
  const rows = table(those.map(each => [shortName(each), each.help]))
  return `usage: threadbox ${subject} COMMAND [FLAGS]\n\n${rows}\n\nthreadbox ${subject} COMMAND --help shows what it takes.`
}

function describe(command: Command): string {
  const { help: summary, more, flags = [], settings: named, examples } = command
  const isServer = flags.length === 0
  const listed = [...flags, ...(named === 'all' && !isServer ? [] : listSettings(command))]
  const hint = named === 'all' && !isServer ? 'and every setting of serve: threadbox serve --help' : undefined
  const parts = [
    describeUsage(command),
    wrap(`${summary[0]?.toUpperCase()}${summary.slice(1)}.${more ? ` ${more}` : ''}`, WIDTH).join('\n'),
    ...(listed.length > 0 ? [table(listed.map(toRow))] : []),
    ...(hint ? [hint] : []),
    ...(examples.length > 0 ? [`example:\n${examples.map(each => `  ${each}`).join('\n')}`] : []),
  ]
  return parts.join('\n\n')
}

function toRow({ name, value, default: fallback, help: text, repeats }: Flag): [string, string] {
  const notes = [...(fallback === undefined ? [] : [`default: ${fallback}`]), ...(repeats ? ['again for more'] : [])]
  return [`--${name}${value ? ` ${value}` : ''}`, `${text}${notes.length > 0 ? ` (${notes.join('; ')})` : ''}`]
}

/** Lays rows out in two columns, within the width. */
function table(rows: readonly (readonly [string, string])[]): string {
  const second = Math.min(SECOND, Math.max(...rows.map(([left]) => left.length)) + 4)
  return rows
    .flatMap(([left, right]) => {
      const [first = '', ...more] = wrap(right, WIDTH - second)
      const indented = more.map(line => `${' '.repeat(second)}${line}`)
      const head = `  ${left}`
      if (head.length + 2 > second) return [head, `${' '.repeat(second)}${first}`, ...indented]
      return [`${head.padEnd(second)}${first}`, ...indented]
    })
    .join('\n')
}

/** Breaks a text into lines. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
