import { parseArgs } from 'node:util'
import { didYouMean } from './closest.ts'

/** One flag of a command. */
export interface Flag {
  name: string
  /** What its value is, for help and errors. A flag without it takes no value. */
  value?: string
  /** The value that it has when it is not given, as it would be written. */
  default?: string
  help: string
  /** Given several times, its values add up. */
  repeats?: true
}

export interface Arguments {
  /** What each flag was given, in order. A flag that takes no value has '' for each time. */
  flags: ReadonlyMap<string, readonly string[]>
  /** What is no flag, and all after `--`. */
  words: readonly string[]
  /** A line for each mistake, which names the flag and never its value. */
  problems: readonly string[]
}

/**
 * Reads `--name value`, `--name=value` and `--name`; `--` ends the flags. With `dashes`, what begins with a single dash is
 * a word, as in a command line that is passed on.
 */
export function parseArguments(args: readonly string[], known: readonly Flag[], { dashes = false } = {}): Arguments {
  const flags = new Map<string, string[]>()
  const words: string[] = []
  const problems: string[] = []
  const names = known.map(({ name }) => name)
  const options = Object.fromEntries(
    known.map(({ name, value }) => [name, { type: value === undefined ? ('boolean' as const) : ('string' as const) }]),
  )
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true, allowPositionals: true })
  // Of `-abc` there are three tokens, of one argument.
  let last = -1
  // What follows a mistaken flag is most likely its value: no mistake of its own.
  let meant = -1
  for (const token of tokens) {
    if (token.kind === 'option-terminator' || token.index === last) continue
    last = token.index
    if (token.kind === 'positional') {
      if (token.index !== meant) words.push(token.value)
      continue
    }
    const { name, rawName, value, inlineValue } = token
    const written = args[token.index] ?? rawName
    const flag = rawName.startsWith('--') ? known.find(each => each.name === name) : undefined
    if (!rawName.startsWith('--')) {
      if (dashes) words.push(written)
      else problems.push(`${written}: not a flag`)
    } else if (!flag) {
      problems.push(`${rawName}: no such flag${didYouMean(name, names, '--')}`)
      if (!inlineValue) meant = token.index + 1
    } else if (flag.value === undefined && value !== undefined) problems.push(`${rawName}: takes no value`)
    else if (flag.value !== undefined && (value === undefined || (!inlineValue && isFlag(value)))) {
      problems.push(`${rawName}: wants a value`)
      meant = token.index + 2
    } else flags.set(name, [...(flags.get(name) ?? []), value ?? ''])
  }
  return { flags, words, problems }
}

/** Taken for a value when it is written as `--name=--other`. */
const isFlag = (value: string): boolean => /^--[a-z]/.test(value)
