import { expect, test } from 'bun:test'
import { createScrubber } from '../../../src/egress/secrets/scrub.ts'

const VALUE = 'gh+p/sécret"=1234567'

function scrubIn(pieces: readonly string[], values = [VALUE]): string {
  const stream = createScrubber(values).stream()
  const clean = pieces.map(piece => stream.push(Buffer.from(piece, 'latin1')))
  return Buffer.concat([...clean, stream.end()]).toString('latin1')
}
const latin1 = (text: string) => Buffer.from(text).toString('latin1')

test.each([
  ['as it is', VALUE],
  ['in an address', encodeURIComponent(VALUE)],
  ['in an address in small letters', encodeURIComponent(VALUE).toLowerCase().replace('gh', 'gh')],
  ['in a form', new URLSearchParams({ v: VALUE }).toString().slice(2)],
  ['in JSON', JSON.stringify(VALUE).slice(1, -1)],
])('takes out a secret %s, at each place where an answer may be split, and keeps its length', (_, form) => {
  const text = latin1(`<p>${form}</p> gh+p/s and more`)
  const clean = latin1(`<p>${'*'.repeat(latin1(form).length)}</p> gh+p/s and more`)
  for (let at = 0; at <= text.length; at++) expect(scrubIn([text.slice(0, at), text.slice(at)])).toBe(clean)
  expect(scrubIn([...text])).toBe(clean)
})

test('takes out what other languages make of a secret in JSON, HTML, addresses and hex: regression', () => {
  const value = `a/b&c<d>"e'f=g+hé!*1234`
  const ascii = (text: string) => text.replaceAll('é', '\\u00e9')
  const json = JSON.stringify(value).slice(1, -1)
  const goJson = json.replaceAll('&', '\\u0026').replaceAll('<', '\\u003c').replaceAll('>', '\\u003e')
  const forms = [
    json.replaceAll('/', '\\/'),
    ascii(json.replaceAll('/', '\\/')),
    ascii(json),
    goJson,
    `a/b\\u0026c\\u003Cd\\u003E\\u0022e\\u0027f=g\\u002Bh\\u00E9!*1234`,
    'a/b&amp;c&lt;d&gt;&quot;e&#x27;f=g+hé!*1234',
    'a/b&amp;c&lt;d&gt;&#34;e&#39;f=g+hé!*1234',
    'a/b&amp;c&lt;d&gt;&quot;e&#039;f=g+hé!*1234',
    'a&#x2F;b&amp;c&lt;d&gt;&quot;e&#39;f&#x3D;g+hé!*1234',
    encodeURIComponent(value).replaceAll('!', '%21').replaceAll('*', '%2A').replaceAll("'", '%27'),
    Buffer.from(value).toString('hex'),
    Buffer.from(value).toString('hex').toUpperCase(),
  ].map(latin1)
  for (const form of forms) expect(scrubIn([`x ${form} y`], [value])).toBe(`x ${'*'.repeat(form.length)} y`)
})

test('takes out what a part of an answer has of a secret: regression', () => {
  const value = 'ghp_0123456789abcdefghij'
  const whole = `some text ${value} and a text that goes on for longer than any form of it, so that it is told apart. `
  const part = (text: string, pieces: readonly string[]) => {
    const stream = createScrubber([value]).stream(true)
    const clean = pieces.map(piece => stream.push(Buffer.from(piece)))
    const result = Buffer.concat([...clean, stream.end()]).toString()
    expect(result).toHaveLength(text.length)
    return result
  }
  const start = whole.indexOf(value)
  const shown = new Set<number>()
  for (let from = 0; from < whole.length; from++) {
    for (let to = from + 1; to <= whole.length; to++) {
      const text = whole.slice(from, to)
      const clean = part(text, to % 7 === 0 ? [...text] : [text])
      for (let at = from; at < to; at++) if (clean[at - from] !== '*') shown.add(at)
    }
  }
  // Three bytes of an end may be any text's.
  for (let at = start + 3; at < start + value.length - 3; at++) expect(shown.has(at)).toBe(false)
  for (const text of ['nothing of it', '\n', whole.slice(40), '']) expect(part(text, [text])).toBe(text)
})

test.each(['', 'u:', 'user:', 'x-access-token:'])('takes out a secret in base64 after %s', before => {
  for (const encoding of ['base64', 'base64url'] as const) {
    const encoded = Buffer.from(`${before}${VALUE}`).toString(encoding)
    const clean = scrubIn([encoded])
    expect(clean).toHaveLength(encoded.length)
    const left = Buffer.from(clean.replaceAll('*', 'A'), encoding).toString('latin1')
    expect(left).not.toContain(latin1(VALUE).slice(2, -2))
    expect(clean.replaceAll('*', '').length).toBeLessThanOrEqual(Math.ceil((before.length * 4) / 3) + 4)
  }
})

test('holds back nothing that cannot be the beginning of a secret', () => {
  const stream = createScrubber([VALUE]).stream()
  expect(stream.push(Buffer.from('data: hello\n\n')).toString()).toBe('data: hello\n\n')
  expect(stream.push(Buffer.from('data: gh+')).toString()).toBe('data: ')
  expect(stream.push(Buffer.from('x')).toString()).toBe('gh+x')
})

test('takes out two secrets of which one begins as the other', () => {
  expect(scrubIn(['abcdef abcd abc'], ['abcd', 'abcdef'])).toBe('****** **** abc')
  expect(scrubIn([...'abcdef abcd abc'], ['abcd', 'abcdef'])).toBe('****** **** abc')
})

test('takes out two secrets that overlap, wherever the answer is split', () => {
  const text = 'x abcdefgh y'
  for (let at = 0; at <= text.length; at++) {
    expect(scrubIn([text.slice(0, at), text.slice(at)], ['abcdef', 'defgh'])).toBe('x ******** y')
  }
})

test('an empty or very short secret leaves answers as they are', () => {
  expect(scrubIn(['a bc d'], ['', 'bc'])).toBe('a bc d')
})
