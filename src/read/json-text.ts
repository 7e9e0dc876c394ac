/**
 * The parser is loaded with the first mistake, because most texts have none. Its CommonJS form loads its parts in a way that a
 * bundle cannot follow.
 */
const parser = () => require('jsonc-parser/lib/esm/main.js') as typeof import('jsonc-parser')

/** The value of a JSON text that somebody wrote by hand. Throws with the line and the column of the first mistake. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(faultOfJson(text))
  }
}

/** Where the first mistake of a text is that is no JSON, and what it is; nothing of the text. */
export function faultOfJson(text: string): string {
  const first = firstFault(text)
  const before = text.slice(0, first?.offset ?? text.length)
  const line = before.split('\n').length
  const column = before.length - before.lastIndexOf('\n')
  return `line ${line}, column ${column}: ${first?.what ?? 'not JSON'}`
}

/** Those after the first are not looked for: a long text has as many as characters. */
function firstFault(text: string): { offset: number; what: string } | undefined {
  let first: { offset: number; what: string } | undefined
  const stop = new Error()
  const { printParseErrorCode, visit } = parser()
  try {
    visit(
      text,
      {
        onError(code, offset) {
          first = { offset, what: wordsOf(printParseErrorCode(code)) }
          throw stop
        },
      },
      { disallowComments: true, allowTrailingComma: false, allowEmptyContent: false },
    )
  } catch (error) {
    if (error !== stop) throw error
  }
  return first
}

/** `CommaExpected` as `comma expected`. */
const wordsOf = (name: string): string => name.replace(/(?<=[a-z])[A-Z]/g, ' $&').toLowerCase()
