/** A word of a command as the shell makes it of its text. */
export interface Word {
  text: string
  /** Whether the shell makes exactly this text of it: false for variables, substitutions and patterns. */
  isLiteral: boolean
  isQuoted: boolean
}

export interface Command {
  /** As it is written, redirections included. */
  raw: string
  words: readonly Word[]
}

/** What a command line runs. */
export interface CommandLine {
  /** Also those in subshells and substitutions. */
  commands: readonly Command[]
  /** What here-documents give to commands. */
  documents: readonly Word[]
  /** Whether there are simple commands alone: nothing is substituted, and no file is written by a redirection. */
  isPlain: boolean
  /** Whether all commands could be told apart. */
  isClear: boolean
}

/** Substitutions inside each other. A command line with more is not clear. */
const MAX_DEPTH = 20

/** What the shell looks up before it runs a command. */
const SIMPLE_VARIABLE = /[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]/y
const BRACED_VARIABLE = /\{[A-Za-z_][A-Za-z0-9_]*\}/y
const ARITHMETIC = /\(\([A-Za-z0-9_$ +*/%-]*\)\)/y
const REDIRECTION = /<<<|<<-?|<>|<&|>>|>&|>\||<|>/y
const PROCESS_SUBSTITUTION = /[<>]\(/y
const SEPARATORS = ' \t\n;&|()<>'

/**
 * Reads a command line as bash does. It errs on the side of caution: `isPlain` is false for what it need not understand,
 * and words of patterns and subshells are commands too. The time is linear in the text's length.
 */
export const parseCommandLine = (text: string): CommandLine => parseNested(text, 0)

/** Over 100 lines: the functions share one position in one text. */
function parseNested(text: string, depth: number, isDocument = false): CommandLine {
  const commands: Command[] = []
  const documents: Word[] = []
  let at = 0
  let isPlain = true
  // The shell joins what stands around the end of a line, here to a substitution.
  let isClear = !text.includes('$\\\n')
  /** Of `${…}` inside each other. */
  let braces = 0
  /** Here-documents whose bodies begin behind the line. */
  let open: { delimiter: string; isQuoted: boolean; isIndented: boolean }[] = []

  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    return pattern.exec(text)?.[0]
  }

  /** Up to the end, or behind the bracket that closes a nested list. */
  function readList(level: number): void {
    if (level > MAX_DEPTH) {
      isClear = isPlain = false
      at = text.length
      return
    }
    let words: Word[] = []
    let from = at
    const endCommand = () => {
      const raw = text.slice(from, at).trim()
      if (words.length > 0) commands.push({ raw, words })
      // A bracket behind a pattern would be taken for the list's end.
      if (level > 0 && words.some(word => word.text === 'case' && !word.isQuoted)) isClear = false
      words = []
    }
    while (at < text.length) {
      const char = text[at] ?? ''
      if (char === ' ' || char === '\t') at++
      else if (char === '#') {
        isPlain = false
        while (at < text.length && text[at] !== '\n') at++
      } else if (match(REDIRECTION) !== undefined && match(PROCESS_SUBSTITUTION) === undefined)
        readRedirection(level, words)
      else if (char === ';' || char === '&' || char === '|' || char === '\n') {
        // Not every shell knows `&>`: others start what stands before in the background.
        if (char === '&' && text[at + 1] === '>') isPlain = false
        endCommand()
        at++
        if (char === '\n') readDocuments(level)
        from = at
      } else if (char === '(' || char === ')') {
        isPlain = false
        endCommand()
        at++
        if (char === ')' && level > 0) return
        if (char === '(') readList(level + 1)
        from = at
      } else {
        const word = readWord(level)
        // A line that goes on has a backslash, which is no word.
        if (word.text !== '' || word.isQuoted || !word.isLiteral) words.push(word)
      }
    }
    endCommand()
    if (level > 0) isClear = isPlain = false
  }

  function readRedirection(level: number, words: Word[]): void {
    const operator = match(REDIRECTION) ?? ''
    // `2>`: the number is no argument. It stands directly before.
    const last = words.at(-1)
    if (last && !last.isQuoted && /^[0-9]+$/.test(last.text) && /^[0-9]$/.test(text[at - 1] ?? '')) words.pop()
    at += operator.length
    while (text[at] === ' ' || text[at] === '\t') at++
    const target = readWord(level)
    if (operator === '<<<') {
      isPlain = false
      words.push(target)
    } else if (operator === '<<' || operator === '<<-') {
      isPlain = false
      // The shell takes `$X` for a delimiter as it is written.
      if (!target.isLiteral) isClear = false
      open.push({ delimiter: target.text, isQuoted: target.isQuoted, isIndented: operator === '<<-' })
    } else {
      const isCopy = operator.endsWith('&') && /^([0-9]|-)$/.test(target.text)
      if (!(target.isLiteral && (isCopy || target.text === '/dev/null'))) isPlain = false
      // bash expands what stands behind `>&` twice, quoted or not.
      if (operator.endsWith('&') && /[$`]/.test(target.text)) isClear = false
    }
  }

  function readDocuments(level: number): void {
    for (const { delimiter, isQuoted, isIndented } of open) {
      const from = at
      let end = text.length
      while (at < text.length) {
        const lineEnd = text.indexOf('\n', at)
        const until = lineEnd < 0 ? text.length : lineEnd
        const line = text.slice(at, until)
        const start = at
        at = Math.min(until + 1, text.length)
        if ((isIndented ? line.replace(/^\t+/, '') : line) === delimiter) {
          end = start
          break
        }
      }
      const body = text.slice(from, end)
      // Substitutions in it are made before the command has it.
      if (isQuoted) documents.push({ text: body, isLiteral: true, isQuoted })
      else takeNested(body, level, true)
    }
    open = []
  }

  /** Adds the commands of a text that the shell reads anew. */
  function takeNested(nested: string, level: number, isDocument = false): void {
    if (depth + level >= MAX_DEPTH) {
      isClear = false
      return
    }
    const line = parseNested(nested, depth + level + 1, isDocument)
    for (const command of line.commands) commands.push(command)
    for (const document of line.documents) documents.push(document)
    if (!line.isClear) isClear = false
  }

  function readWord(level: number): Word {
    let word = ''
    let isLiteral = true
    let isQuoted = false
    const from = at
    if (isDocument && level === 0) readQuoted('')
    while (at < text.length) {
      const char = text[at] ?? ''
      if (match(PROCESS_SUBSTITUTION) !== undefined) {
        isLiteral = isPlain = false
        at += 2
        readList(level + 1)
      } else if (SEPARATORS.includes(char)) break
      else if (char === "'") {
        isQuoted = true
        const end = text.indexOf("'", at + 1)
        if (end < 0) isClear = isPlain = false
        word += text.slice(at + 1, end < 0 ? text.length : end)
        at = end < 0 ? text.length : end + 1
      } else if (char === '"') {
        isQuoted = true
        at++
        readQuoted('"')
      } else if (char === '\\') {
        const next = text[at + 1]
        if (next === undefined || next === '\n') isPlain = false
        if (next !== '\n') {
          isQuoted = true
          word += next ?? ''
        }
        at += 2
      } else if (char === '$' || char === '`') readSubstitution(false)
      else {
        if (char < ' ' || char === '\x7f') isPlain = false
        // Patterns of files, and `{a,b}`. A bracket or brace alone is a word.
        if (char === '*' || char === '?') isLiteral = false
        if ((char === '[' || char === '{') && !/^(\[\[?|\{\}?)(?![^\s;&|])/.test(text.slice(from, from + 3)))
          isLiteral = false
        word += char
        at++
      }
    }
    // Quoted, this is a name of a file, and no home directory.
    if (isQuoted && word.startsWith('~')) isLiteral = false
    return { text: word, isLiteral, isQuoted }

    /** Up to behind the end of a quoted text, of `${…}`, or of all. */
    function readQuoted(end: '"' | '}' | ''): void {
      if (braces > MAX_DEPTH) at = text.length
      while (at < text.length) {
        const char = text[at] ?? ''
        if (char === end) {
          at++
          return
        }
        if (char === '\\') {
          const next = text[at + 1] ?? ''
          if (next === '\n' || next === '') isPlain = false
          word += '$`"\\'.includes(next) ? next : next === '\n' ? '' : char + next
          at += 2
        } else if (char === '$' || char === '`') readSubstitution(true)
        else if (char === '"' && end === '}') {
          at++
          readQuoted('"')
        } else {
          if (char === "'" && end === '}') isClear = false
          if ((char < ' ' && char !== '\t' && char !== '\n') || char === '\x7f') isPlain = false
          word += char
          at++
        }
      }
      if (end !== '') isClear = isPlain = false
    }

    function readSubstitution(isInQuotes: boolean): void {
      if (text[at] === '`') {
        isLiteral = isPlain = false
        const from = at + 1
        for (at = from; at < text.length && text[at] !== '`'; at++) if (text[at] === '\\') at++
        if (at >= text.length) isClear = false
        takeNested(text.slice(from, at).replace(/\\([\\`$])/g, '$1'), level)
        at++
        return
      }
      at++
      const arithmetic = match(ARITHMETIC)
      const variable = match(SIMPLE_VARIABLE) ?? match(BRACED_VARIABLE)
      if (arithmetic !== undefined || variable !== undefined) {
        isLiteral = false
        if (arithmetic !== undefined) isPlain = false
        at += (arithmetic ?? variable ?? '').length
      } else if (text[at] === '(') {
        isLiteral = isPlain = false
        at++
        readList(level + 1)
      } else if (text[at] === '{') {
        isLiteral = isPlain = false
        at++
        braces++
        readQuoted('}')
        braces--
      } else if (text[at] === "'" && !isInQuotes) {
        isLiteral = isPlain = false
        for (at++; at < text.length && text[at] !== "'"; at++) if (text[at] === '\\') at++
        if (at >= text.length) isClear = false
        at++
      } else if (text[at] === '"' && !isInQuotes) isPlain = false
      else if (text[at] === '[') isLiteral = isPlain = false
      else word += '$'
    }
  }

  // A document is one text: only its substitutions run.
  if (isDocument) documents.push(readWord(0))
  else readList(0)
  return { commands, documents, isPlain, isClear }
}
