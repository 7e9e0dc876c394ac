import { type ParseError, parse, printParseErrorCode } from 'jsonc-parser'

/** The value of a JSON text that somebody wrote by hand. Throws with the line and the column of the first mistake. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    const errors: ParseError[] = []
    parse(text, errors, { disallowComments: true, allowTrailingComma: false, allowEmptyContent: false })
    const [first] = errors
    const before = text.slice(0, first?.offset ?? text.length).split('\n')
    const column = (before.at(-1)?.length ?? 0) + 1
    const what = first ? wordsOf(printParseErrorCode(first.error)) : 'not JSON'
    throw new Error(`line ${before.length}, column ${column}: ${what}`)
  }
}

/** `CommaExpected` as `comma expected`. */
const wordsOf = (name: string): string => name.replace(/(?<=[a-z])[A-Z]/g, ' $&').toLowerCase()
