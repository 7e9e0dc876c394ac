import type { Flag } from '../../read/arguments.ts'

/** One command: the source of its help and of its parser. */
export interface Command {
  /** The words that choose it. */
  name: string
  /** The operands that follow: optional ones in brackets, repeatable ones with `…`. */
  operands?: string
  /** One short phrase that describes the command. */
  help: string
  /** What else a user has to know. */
  more?: string
  flags?: readonly Flag[]
  /** The settings of `serve` that the command accepts too. */
  settings?: 'all' | readonly string[]
  examples: readonly string[]
  /** Only threadbox itself starts such a command, so help does not show it. */
  isInternal?: true
}
