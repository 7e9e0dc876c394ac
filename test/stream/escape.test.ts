import { expect, test } from 'bun:test'
import { escapedBytes, escapeInto } from '../../src/stream/escape.ts'

const escaped = (text: string, at = 0) => {
  const bytes = Buffer.from(text)
  const target = Buffer.alloc(at + escapedBytes(bytes.byteLength))
  return target.toString('utf8', at, escapeInto(bytes, target, at))
}
const asJson = (text: string) => JSON.stringify(text).slice(1, -1)

test('every character is escaped as JSON.stringify does, at every place of a word and beside every other', () => {
  const characters = [...Array.from({ length: 0x82 }, (_, code) => String.fromCharCode(code)), 'é', '漢', '🎈']
  for (const one of characters) {
    for (const other of characters) {
      for (let before = 0; before < 4; before++) {
        const text = `${'a'.repeat(before)}${one}${other}${one}bcd`
        if (escaped(text) !== asJson(text)) expect(escaped(text)).toBe(asJson(text))
      }
    }
  }
})

test('text of any length fits, from any place on', () => {
  for (let length = 0; length < 20; length++) {
    for (const each of ['x', '"', '\0']) {
      const text = each.repeat(length)
      for (const at of [0, 1, 3]) expect(escaped(text, at)).toBe(asJson(text))
    }
  }
})
