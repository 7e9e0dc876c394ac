import { expect, test } from 'bun:test'
import { createRedactor } from '../../src/gateway/redact.ts'

const secret = 'sk-real-key'
const redacted = (text: string, size: number): string => {
  const redactor = createRedactor(secret)
  const bytes = Buffer.from(text)
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.byteLength; at += size) pieces.push(redactor.push(bytes.subarray(at, at + size)))
  return Buffer.concat([...pieces, redactor.end()]).toString()
}

const texts: [string, string][] = [
  ['nothing of it', 'nothing of it'],
  [`bad key ${secret}.`, 'bad key ***.'],
  [`${secret}${secret} sk-re${secret}`, '****** sk-re***'],
  ['sk-real-ke', 'sk-real-ke'],
  [`ü${secret}ü`, 'ü***ü'],
  ['', ''],
]
test.each(texts)('a key is taken out of %j however it is cut: regression', (text, wanted) => {
  for (let size = 1; size <= text.length + 1; size++) expect(redacted(text, size)).toBe(wanted)
})

test('only what may be its beginning is held back', () => {
  const redactor = createRedactor(secret)
  expect(redactor.push(Buffer.from('data: hello\n\n')).toString()).toBe('data: hello\n\n')
  expect(redactor.push(Buffer.from('ends with sk-r')).toString()).toBe('ends with ')
  expect(redactor.push(Buffer.from('ight')).toString()).toBe('sk-right')
})

test('without a key all passes as it is', () => {
  const redactor = createRedactor(undefined)
  expect(redactor.push(Buffer.from('any')).toString()).toBe('any')
})
