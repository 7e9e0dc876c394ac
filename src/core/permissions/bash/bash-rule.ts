import { matchesPieces, type Pieces, splitAtStars } from '../wildcards.ts'
import { type Command, type CommandLine, parseCommandLine, type Word } from './command-line.ts'
import { baseName, type Candidate, expandsIndex, isAssignment, listPossible, type Possible } from './could-run.ts'

/** What a rule of Bash says of commands. */
export type BashPattern =
  /** `git push:*` or `git push *`: what begins with these words. */
  | { type: 'prefix'; words: readonly string[] }
  /** With `*` elsewhere. */
  | { type: 'wildcards'; pieces: Pieces }
  /** One command line as it is written. */
  | { type: 'exact'; text: string; commands: readonly (readonly string[])[]; isPlain: boolean }

/** No shell takes a longer command. What is longer is not read: a rule that forbids matches it, one that allows does not. */
const MAX_LENGTH = 128 * 1024

/** Variables that change neither which program a command runs nor what it does to files. */
const harmless = new Set(['CI', 'NODE_ENV', 'NO_COLOR', 'FORCE_COLOR', 'LANG', 'LC_ALL', 'TZ'])

/** Throws with what is wrong with it. */
export function parseBashPattern(text: string): BashPattern {
  const pieces = splitAtStars(text)
  const [first = ''] = pieces
  const isOpen = pieces.length === 2 && pieces[1] === '' && /[: ]$/.test(first)
  if (isOpen) {
    const { commands, isPlain } = parseCommandLine(first.slice(0, -1))
    const [command, ...more] = commands
    if (!command || !isPlain || more.length > 0 || !command.words.every(({ isLiteral }) => isLiteral))
      throw new Error('what stands before its * is not the beginning of one simple command')
    return { type: 'prefix', words: command.words.map(({ text: word }) => word) }
  }
  if (pieces.length > 1)
    return { type: 'wildcards', pieces: pieces.map((piece, index) => toPiece(piece, index, pieces)) }
  const line = parseCommandLine(first)
  const commands = line.commands.map(({ words }) => words.map(word => word.text))
  return { type: 'exact', text: first.trim(), commands, isPlain: line.isPlain && line.isClear }
}

/** Drops the colon before a last `*`: the rule `git * main:*` means `git * main*`. */
const toPiece = (piece: string, index: number, pieces: Pieces): string =>
  index === pieces.length - 2 && pieces.at(-1) === '' && piece.endsWith(':') ? piece.slice(0, -1) : piece

/** A command line of a call, read once for all rules. */
export interface BashCommand {
  text: string
  line(): CommandLine
  possible(): Possible
}

export function readBashCommand(text: string): BashCommand {
  let line: CommandLine | undefined
  let possible: Possible | undefined
  return {
    text,
    line: () => (line ??= parseCommandLine(text)),
    possible: () => (possible ??= listPossible(text)),
  }
}

/** Whether the rules allow all that a command line does: it is one of them, or has only simple commands that they allow. */
export function allowsCommand(patterns: readonly BashPattern[], command: BashCommand): boolean {
  const text = command.text.trim()
  if (patterns.some(pattern => pattern.type === 'exact' && pattern.text === text)) return true
  if (text.length > MAX_LENGTH || patterns.length === 0) return false
  const { commands, isPlain, isClear } = command.line()
  if (!isPlain || !isClear || commands.length === 0) return false
  return commands.every(each => patterns.some(pattern => allows(pattern, each)))
}

function allows(pattern: BashPattern, { raw, words }: Command): boolean {
  if (pattern.type === 'exact') {
    const [only, ...more] = pattern.commands
    // The words of `bash < file` do not say what it reads.
    if (!pattern.isPlain || only === undefined || more.length > 0) return pattern.text === raw
    return pattern.text === raw || isSame(words, only, true)
  }
  const isOwn = (word: Word) =>
    !isAssignment(word) || (!word.isQuoted && harmless.has(word.text.split('=', 1)[0] ?? ''))
  const from = words.findIndex(word => !isAssignment(word))
  const program = words[from]
  if (!program?.isLiteral || !words.slice(0, from).every(isOwn)) return false
  if (words.some(word => expandsIndex(program.text, word))) return false
  if (pattern.type === 'prefix') return isSame(words.slice(from), pattern.words, false)
  return from === 0 && matchesPieces(raw, pattern.pieces)
}

const isSame = (words: readonly Word[], wanted: readonly string[], isWhole: boolean): boolean =>
  (isWhole ? words.length === wanted.length : words.length >= wanted.length) &&
  wanted.every((text, index) => words[index]?.isLiteral === true && words[index].text === text)

/** Whether a command line may do what the rule describes, as far as it can be seen. In doubt it does. */
export function couldMatch(pattern: BashPattern, command: BashCommand): boolean {
  if (command.text.length > MAX_LENGTH) return true
  if (pattern.type === 'exact' && pattern.text === command.text.trim()) return true
  const { candidates, isSeen } = command.possible()
  if (!isSeen) return true
  if (pattern.type === 'prefix') return candidates.some(candidate => begins(candidate, pattern.words, false))
  if (pattern.type === 'wildcards')
    return matchesPieces(command.text, ['', ...pattern.pieces]) || couldMatchPieces(candidates, pattern.pieces)
  const { commands } = pattern
  return commands.length > 0 && commands.every(words => candidates.some(each => begins(each, words, true)))
}

/** Compares the words of each command once, wherever in it a candidate begins. */
function couldMatchPieces(candidates: readonly Candidate[], pieces: Pieces): boolean {
  const all = new Set(candidates.map(({ words }) => words))
  return [...all].some(words => {
    const text = words.map(word => word.text).join(' ')
    // What a variable holds may be all that is missing.
    if (!words.every(({ isLiteral }) => isLiteral)) return text.includes((pieces[0] ?? '').trim())
    return matchesPieces(text, ['', ...pieces])
  })
}

/**
 * Whether a candidate has these words in order. Options, each with one value, may stand between them: `git -C /tmp push` is
 * a `git push`. A word that is not literal may be any number of words.
 */
function begins({ words, from, isAnywhere }: Candidate, wanted: readonly string[], isWhole: boolean): boolean {
  const total = wanted.length
  /** Numbers of words that are found, doubled; odd when an option stood last. */
  let states = new Set<number>([0])
  for (let at = from; at < words.length; at++) {
    const word = words[at]
    if (!word) return false
    const next = new Set<number>(isAnywhere ? [0] : [])
    for (const state of states) {
      const found = state >> 1
      if (found > 0 && !word.isLiteral) {
        if (found < total) return true
        next.add(state)
      }
      if (found < total && isNamed(word.text, wanted[found] ?? '', found === 0)) {
        if (found + 1 === total && !isWhole) return true
        next.add((found + 1) * 2)
      }
      if (found > 0 && found < total) {
        if (word.text.startsWith('-')) next.add(found * 2 + 1)
        else if (state % 2 === 1) next.add(found * 2)
      }
    }
    states = next
    if (states.size === 0) return false
  }
  return states.has(total * 2)
}

const isNamed = (text: string, wanted: string, isProgram: boolean): boolean =>
  text === wanted || (isProgram && baseName(text) === baseName(wanted))
