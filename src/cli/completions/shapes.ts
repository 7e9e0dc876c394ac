import type { Flag } from '../../read/arguments.ts'
import { listSettings } from '../command-line.ts'
import type { Command } from '../commands/command.ts'
import { commands } from '../commands.ts'

/** What a shell offers for a value: files, directories, one of these words, or nothing that it could know. */
export type Kind = 'file' | 'directory' | 'value' | readonly string[]

export const shownCommands: readonly Command[] = commands.filter(({ isInternal }) => !isInternal)

/** The commands by their first word. When a command has two words, the first is a subject that other commands may share. */
export const subjects: ReadonlyMap<string, readonly Command[]> = Map.groupBy(
  shownCommands,
  ({ name }) => name.split(' ')[0] ?? '',
)

export const hasActions = (those: readonly Command[]): boolean => those.some(({ name }) => name.includes(' '))

/** Describes a first word in one phrase. */
export const describeSubject = (those: readonly Command[]): string =>
  hasActions(those) ? those.map(({ name }) => name.split(' ')[1]).join(', ') : (those[0]?.help ?? '')

export const flagsOf = (command: Command): readonly Flag[] => [
  ...(command.flags ?? []),
  ...listSettings(command),
  { name: 'help', help: 'show what it takes' },
]

/** Undefined when the flag takes no value. */
export const kindOf = ({ value }: Flag): Kind | undefined => (value === undefined ? undefined : kindOfWord(value))

/** The kind of a command's operands. */
export function kindOfOperands({ operands = '' }: Command): Kind {
  const kinds = operands.split(' ').map(word => kindOfWord(word.replaceAll(/[[\]…]/g, '')))
  return kinds.find(kind => kind !== 'value') ?? 'value'
}

function kindOfWord(word: string): Kind {
  if (word.includes('|')) return word.split('|')
  if (['FILE', 'FILES', 'PATH', 'LOCAL=INSIDE'].includes(word)) return 'file'
  return word === 'DIR' ? 'directory' : 'value'
}
