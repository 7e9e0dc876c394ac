/** What a parser that looks at its text again and again stumbles over, 64 KB of each. */

const LENGTH = 64 * 1024

const pieces = [
  ...[
    ' ',
    '\t',
    '\n',
    '\r',
    '\r\n',
    ' \n',
    ',',
    ' , ',
    ';',
    '; ',
    ':',
    'a:b:c',
    '=',
    'a=b;',
    '.',
    '..',
    '/',
    './',
    '\\',
  ],
  ...['*', '**/', '?', '(', ')', 'a(', '[', '[]', ']', '{', '}', '{a,b}', '{}', '<', '>', '</', '<!--', '<p>', '</i>'],
  ...['<a href="', '<svg>', '<script>', '&', '&amp', '&#1', '"', "'", '%', '%41', '#', '#1', '!', '-', '--', '_', '__'],
  ...['0', '1.', 'a', 'A ', 'a\t', '~', '$', '+', '|', '@', '\0', '\x7f', 'é', '\u{1f600}', 'data:', 'data: {}\n'],
  ...[
    '{"a":',
    '[{"a":[',
    '<request>\n',
    '\n</request>',
    'mcp__',
    'Bearer ',
    'boundary=',
    '\x01tb:1:',
    '127.',
    '::',
    'f:',
  ],
]

/** Each alone, between other characters, and where what comes last makes the whole wrong. */
export const awkward: readonly string[] = pieces.flatMap(piece => {
  const text = piece.repeat(Math.ceil(LENGTH / piece.length)).slice(0, LENGTH)
  return [text, `a${text}b`, `${text}\x01`, `a${text}\n\x01`]
})
