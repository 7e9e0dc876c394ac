/** Shorter values would be found in base64 in every answer. */
const MIN_BASE64_BYTES = 8

/** The forms in which servers repeat a value: as it is, in JSON, in HTML, in URLs, in hex and within base64, as text of bytes. */
export function formsOf(value: string): string[] {
  const bytes = Buffer.from(value)
  // Most tokens look the same in every encoding.
  const isPlain = /^[\w.~-]*$/.test(value)
  const written = isPlain ? [] : [...jsonFormsOf(value), ...htmlEscapes.map(escapes => escaped(value, escapes))]
  const hex = bytes.toString('hex')
  const all = [
    ...[value, ...written].map(text => Buffer.from(text).toString('latin1')),
    ...(isPlain ? [] : addressFormsOf(value)),
    ...[hex, hex.toUpperCase()],
    ...base64FormsOf(bytes),
  ]
  return [...new Set(all)]
}

type Escapes = Readonly<Record<string, string>>

const escaped = (value: string, escapes: Escapes): string =>
  value.replace(/[&<>"'/`=]/g, character => escapes[character] ?? character)

/** The escapes of PHP, of Python, of Go and most of JavaScript, of XML, and of Mustache. */
const htmlEscapes: readonly Escapes[] = [
  { '"': '&quot;', "'": '&#039;' },
  { '"': '&quot;', "'": '&#x27;' },
  { '"': '&#34;', "'": '&#39;' },
  { '"': '&quot;', "'": '&#39;' },
  { '"': '&quot;', "'": '&apos;' },
  { '"': '"', "'": "'" },
  { '"': '&quot;', "'": '&#39;', '/': '&#x2F;', '`': '&#x60;', '=': '&#x3D;' },
].map(escapes => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', ...escapes }))

/**
 * The characters that different libraries write as `\u` and a number although they need not: JavaScript's; Go's and Ruby's; Gson;
 * .NET.
 */
const jsonEscapes = [/(?!)/g, /[<>&]/g, /[<>&'=]/g, /[<>&'+`]/g]

function jsonFormsOf(value: string): string[] {
  const plain = JSON.stringify(value).slice(1, -1)
  return jsonEscapes
    .flatMap(special => [plain, plain.replaceAll('\\"', '\\u0022')].map(text => ({ text, special })))
    .flatMap(({ text, special }) =>
      [false, true].flatMap(isAscii =>
        [false, true].map(isCapital => {
          const numbered = (character: string) => {
            const digits = character.charCodeAt(0).toString(16).padStart(4, '0')
            return `\\u${isCapital ? digits.toUpperCase() : digits}`
          }
          const safe = text.replace(special, numbered)
          return isAscii ? safe.replace(/[\u0080-\uffff]/g, numbered) : safe
        }),
      ),
    )
    .flatMap(text => [text, text.replaceAll('/', '\\/')])
}

function addressFormsOf(value: string): string[] {
  const encoded = encodeURIComponent(value)
  // Encodes everything but the characters that RFC 3986 calls unreserved.
  const strict = encoded.replace(/[!'()*]/g, each => `%${each.charCodeAt(0).toString(16).toUpperCase()}`)
  const form = new URLSearchParams({ v: value }).toString().slice(2)
  return [encoded, strict, form].flatMap(text => [text, text.replace(/%[0-9A-F]{2}/g, digits => digits.toLowerCase())])
}

/** The part of a value's base64 that does not depend on its neighbours, for each of the three positions at which it may start. */
function base64FormsOf(bytes: Buffer): string[] {
  if (bytes.byteLength < MIN_BASE64_BYTES) return []
  return [0, 1, 2].flatMap(before => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replaceAll('=', '')
    const last = (before + bytes.byteLength) % 3 === 0 ? encoded.length : encoded.length - 1
    const inner = encoded.slice(before === 0 ? 0 : before + 1, last)
    return [inner, inner.replaceAll('+', '-').replaceAll('/', '_')]
  })
}
