import { ConfigError } from '../core/config.ts'
import { parseArguments } from '../read/arguments.ts'
import { didYouMean } from '../read/closest.ts'
import { readConfig } from '../start/config.ts'
import { settings } from '../start/settings.ts'
import type { Command } from './commands/command.ts'
import { commands } from './commands.ts'

/** A mistake on the command line. It is printed without a stack; the exit code is 2. */
export class UsageError extends Error {
  readonly exitCode = 2
}

/** The arguments of a command. Its flags are those in the table of commands. */
export interface Given {
  /** The second word of the command's name, such as `create`; empty when there is no second word. */
  action: string
  words: readonly string[]
  has(flag: string): boolean
  /** The last value of a flag. */
  find(flag: string): string | undefined
  /** Every value of a flag. */
  all(flag: string): readonly string[]
  /** The settings of `serve` among the flags, for `readConfig`. */
  settings: readonly string[]
}

/** The commands whose name begins with these words: each `keys …` for `keys`, only one for `keys create`. */
export function findCommands(words: readonly string[]): readonly Command[] {
  const two = commands.filter(({ name }) => name === words.slice(0, 2).join(' '))
  if (two.length > 0) return two
  return commands.filter(({ name }) => name.split(' ')[0] === words[0])
}

/** The words that help is requested for; undefined when no help is requested. */
export function findHelpTopic(args: readonly string[]): readonly string[] | undefined {
  const own = args.includes('--') ? args.slice(0, args.indexOf('--')) : args
  if (own.length === 0) return []
  if (own.some(word => word === '--help' || word === '-h')) return own.filter(word => !word.startsWith('-'))
  return own[0] === 'help' ? own.slice(1) : undefined
}

/** Finds the command and parses its arguments. Throws a UsageError, or a ConfigError with every mistake at once. */
export async function readCommand(args: readonly string[]): Promise<{ name: string; given: Given }> {
  const [command, ...others] = findCommands(args)
  if (!command) throw unknownCommand(args)
  if (others.length > 0 || command.name.split(' ').length > args.length) throw unknownAction(args, [command, ...others])
  return { name: command.name.split(' ')[0] ?? '', given: await read(command, args) }
}

export function unknownCommand(args: readonly string[]): UsageError {
  const [word = ''] = args
  const known = [
    ...new Set(commands.filter(({ isInternal }) => !isInternal).map(({ name }) => name.split(' ')[0] ?? '')),
  ]
  return new UsageError(`no such command: ${word}${didYouMean(word, known) || '.'} See: threadbox help`)
}

function unknownAction([subject, word]: readonly string[], those: readonly Command[]): UsageError {
  const actions = those.map(({ name }) => name.split(' ')[1] ?? '')
  const usage = `usage: threadbox ${subject} ${actions.join(' | ')}`
  if (word === undefined || word.startsWith('-')) return new UsageError(usage)
  return new UsageError(`${subject} ${word}: no such command${didYouMean(word, actions) || '.'} ${usage}`)
}

async function read(command: Command, args: readonly string[]): Promise<Given> {
  const { name, flags = [] } = command
  const [, action = ''] = name.split(' ')
  const taken = listSettings(command)
  const operands = command.operands?.split(' ') ?? []
  const isOpen = operands.at(-1)?.includes('…') ?? false
  const parsed = parseArguments(args.slice(name.split(' ').length), [...flags, ...taken], { dashes: isOpen })
  const own = (flag: string) => {
    if (!flags.some(each => each.name === flag))
      throw new Error(`the table of commands gives ${name} no flag --${flag}`)
    return parsed.flags.get(flag) ?? []
  }
  const asFlags = [...parsed.flags]
    .filter(([flag]) => taken.some(each => each.name === flag))
    .flatMap(([flag, values]) => values.map(value => `--${flag}=${value}`))
  const { words } = parsed
  const problems = [...parsed.problems]
  if (problems.length === 0) {
    const missing = operands.filter(each => !each.startsWith('['))[words.length]
    if (missing !== undefined) problems.push(`${missing} is missing. ${describeUsage(command)}`)
  }
  if (!isOpen) problems.push(...words.slice(operands.length).map(word => `${word}: not a flag, nor wanted here`))
  if (problems.length > 0) {
    // With the mistakes in values: all mistakes are reported at once.
    const more = taken.length > 0 ? await readConfig(asFlags, process.env).catch(listProblems) : []
    throw new ConfigError([...problems, ...(Array.isArray(more) ? more : [])])
  }
  return {
    action,
    words,
    has: flag => own(flag).length > 0,
    find: flag => own(flag).at(-1),
    all: own,
    settings: asFlags,
  }
}

const listProblems = (error: unknown): readonly string[] => (error instanceof ConfigError ? error.problems : [])

/** The settings of `serve` that a command takes. */
export const listSettings = ({ settings: named = [] }: Command) =>
  named === 'all' ? settings : settings.filter(({ name }) => named.includes(name))

export const describeUsage = ({ name, operands, flags, settings: named }: Command): string =>
  ['usage: threadbox', name, ...(flags || named ? ['[FLAGS]'] : []), ...(operands ? [operands] : [])].join(' ')
