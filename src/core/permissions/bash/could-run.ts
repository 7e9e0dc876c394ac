import { type Command, parseCommandLine, type Word } from './command-line.ts'

/** Programs and words of the shell that run the command behind their options. */
const runners = new Set(
  `sudo doas env timeout gtimeout nice ionice chrt taskset nohup setsid stdbuf time command builtin exec xargs gxargs
  caffeinate unbuffer firejail fakeroot proot dbus-run-session xvfb-run ltrace strace setpriv`.split(/\s+/),
)

/** Programs that read commands, or run one of their arguments as a command line. */
const shells = new Set('sh bash dash ash zsh ksh mksh fish rbash busybox toybox eval trap source .'.split(' '))

/** Programs that run some of their arguments, wherever these begin. */
const others = new Set(
  `su runuser ssh script watch parallel flock chroot unshare nsenter systemd-run at batch entr find fd fdfind tmux
  screen nix-shell gosu su-exec tini dumb-init gdb mapfile readarray compgen complete`.split(/\s+/),
)

/** Commands of the shell that expand what stands in the index of a variable they are given, quoted or not: `a[$(ls)]`. */
const indexing = new Set(
  '[ [[ test printf read let declare typeset local export readonly unset wait getopts'.split(' '),
)

/** Whether a command runs what is hidden in a word of it. */
export const expandsIndex = (program: string, { text }: Word): boolean =>
  indexing.has(program) && text.includes('[') && /[$`]/.test(text)

const keywords = new Set('if then elif else while until do ! {'.split(' '))

/** What these begin has a name of its own first. */
const named = new Set(['function', 'coproc'])

/** A variable that is set for one command. */
const ASSIGNMENT = /^[A-Za-z_][A-Za-z0-9_]*(\[[^\]]*\])?\+?=/

/** Durations, priorities and masks. */
const NUMBER = /^[0-9][\w.,:-]*$/

/** A command within a command's argument, and so on. */
const MAX_DEPTH = 8

/** Where a command may begin, among words. */
export interface Candidate {
  words: readonly Word[]
  from: number
  /** It may begin at any later word as well. */
  isAnywhere: boolean
}

/** All that a command line may run, plain or hidden in what it calls. */
export interface Possible {
  candidates: readonly Candidate[]
  /** False when something is run that cannot be seen. */
  isSeen: boolean
}

/** Lists what a command line could run: rather too much than too little. The time is linear in the text's length. */
export function listPossible(text: string): Possible {
  const candidates: Candidate[] = []
  let isSeen = true

  function takeLine(line: string, depth: number): void {
    if (depth > MAX_DEPTH) {
      isSeen = false
      return
    }
    const { commands, documents, isClear } = parseCommandLine(line)
    if (!isClear) isSeen = false
    const programs = commands.flatMap(command => takeCommand(command, depth))
    const isForShell = programs.some(name => name === undefined || shells.has(name))
    const namesShell = commands.some(({ words }) => words.some(word => shells.has(baseName(word.text))))
    // A shell runs what is written for it, as in `echo "rm x" | sh`.
    for (const { text: said, isLiteral } of isForShell || namesShell ? documents : []) {
      takeLine(said, depth + 1)
      if (!isLiteral) isSeen = false
    }
    for (const { words } of isForShell ? commands : []) {
      if (commands.length > 1) takeAnywhere(words, 0, depth)
      if (documents.length === 0 && readsCommands(words.at(-1))) isSeen = false
    }
  }

  /** Returns the names of the programs that a command may run; undefined for one that cannot be seen. */
  function takeCommand({ words }: Command, depth: number): (string | undefined)[] {
    const programs: (string | undefined)[] = []
    const starts = [0]
    while (starts.length > 0) {
      let at = starts.pop() ?? 0
      while (isBefore(words[at])) at++
      const program = words[at]
      if (!program) continue
      candidates.push({ words, from: at, isAnywhere: false })
      const name = program.isLiteral && program.text !== '{}' ? baseName(program.text) : undefined
      for (const word of words) if (expandsIndex(name ?? '', word)) takeText(word.text, depth)
      programs.push(name)
      if (name === undefined) isSeen = false
      else if (shells.has(name)) takeShell(words, at, depth)
      else if (others.has(name) || named.has(name)) takeAnywhere(words, at + 1, depth)
      else if (runners.has(name)) takeRun(words, at + 1, depth, starts)
      // What xargs reads is what `env` runs.
      const isUnnamed = programs.length > 1 && starts.length === 0 && name !== undefined && runners.has(name)
      if (isUnnamed && programs.some(each => each === 'xargs' || each === 'gxargs')) isSeen = false
    }
    return programs
  }

  /** Finds where the command behind a runner begins. What may be the value of an option may be a command as well. */
  function takeRun(words: readonly Word[], from: number, depth: number, starts: number[]): void {
    let mayBeValue = false
    for (let at = from; at < words.length; at++) {
      const word = words[at]
      if (!word) return
      const { text: said, isLiteral } = word
      const isOption = isLiteral && said.startsWith('-')
      if (isOption || mayBeValue) takeText(said.replace(/^(--[\w-]+=|-[A-Za-z])/, ''), depth)
      if (!isOption && !isBefore(word)) {
        candidates.push({ words, from: at, isAnywhere: false })
        // `env` takes anything with `=` for a variable.
        const isNumber = isLiteral && (NUMBER.test(said) || said.includes('='))
        if (!isNumber && (!mayBeValue || runsOthers(word) || at + 1 === words.length)) {
          starts.push(at)
          return
        }
      }
      mayBeValue = isOption
    }
  }

  function takeShell(words: readonly Word[], at: number, depth: number): void {
    const name = baseName(words[at]?.text ?? '')
    const behind = words.slice(at + 1)
    const isScript = name === 'eval' || name === 'trap' || behind.some(({ text: said }) => /^-[A-Za-z]*c/.test(said))
    if (isScript && behind.some(({ isLiteral }) => !isLiteral)) isSeen = false
    takeAnywhere(words, at + 1, depth)
  }

  function takeAnywhere(words: readonly Word[], from: number, depth: number): void {
    candidates.push({ words, from, isAnywhere: true })
    for (const word of words.slice(from)) takeText(word.text, depth)
  }

  /** A text of more than one word may be a command line itself. */
  function takeText(said: string, depth: number): void {
    if (/[\s;&|()<>`$"'\\]/.test(said)) takeLine(said, depth + 1)
  }

  takeLine(text, 0)
  return { candidates, isSeen }
}

/** Whether a command ends with a shell that has no script, and so reads what comes down a pipe. */
const readsCommands = (last: Word | undefined): boolean =>
  last !== undefined && (shells.has(baseName(last.text)) || /^(-[a-z]*$|\/dev\/|\/proc\/)/.test(last.text))

const runsOthers = ({ text }: Word): boolean => {
  const name = baseName(text)
  return runners.has(name) || shells.has(name) || others.has(name)
}

const isBefore = (word: Word | undefined): boolean =>
  word !== undefined && !word.isQuoted && (keywords.has(word.text) || isAssignment(word))

/** Whether a word sets a variable for the command behind it. */
export const isAssignment = ({ text }: Word): boolean => ASSIGNMENT.test(text)

export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
