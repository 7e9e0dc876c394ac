import { expect, test } from 'bun:test'
import { OutputRing } from '../../src/environment/output-ring.ts'

const textOf = ({ pieces }: ReturnType<OutputRing['read']>) =>
  pieces.map(({ stream, bytes }) => `${stream === 'stdout' ? '' : '!'}${bytes}`)

test('it gives what it was given, wherever one begins, as long as that is kept', () => {
  const ring = new OutputRing(64)
  const all: { stream: 'stdout' | 'stderr'; byte: number }[] = []
  // Lengths that meet every place of the ring's end.
  for (let round = 0; round < 500; round++) {
    const stream = round % 3 === 0 ? 'stderr' : 'stdout'
    const bytes = Uint8Array.from({ length: (round * 7) % 30 }, (_, index) => (round + index) % 256)
    ring.append(stream, bytes)
    for (const byte of bytes) all.push({ stream, byte })
    expect([ring.end, ring.start]).toEqual([all.length, Math.max(0, all.length - 64)])
    const from = ring.start + (round % 64)
    const { offset, pieces } = ring.read(from, 1000)
    const read = pieces.flatMap(({ stream, bytes }) => [...bytes].map(byte => ({ stream, byte })))
    expect(offset).toBe(Math.min(from, ring.end))
    expect(read).toEqual(all.slice(offset))
  }
})

test('more than it holds leaves the last of it', () => {
  const ring = new OutputRing(8)
  ring.append('stdout', Buffer.from('ab'))
  ring.append('stderr', Buffer.from('0123456789'))
  expect([ring.start, ring.end, textOf(ring.read(0, 100))]).toEqual([4, 12, ['!23456789']])
  ring.append('stdout', Buffer.from('z'))
  expect(textOf(ring.read(0, 100))).toEqual(['!3456789', 'z'])
  expect(ring.read(0, 100).offset).toBe(5)
})

test('an answer is as long as it may be, and what is past the end is the end', () => {
  const ring = new OutputRing()
  ring.append('stdout', Buffer.from('abc'))
  ring.append('stderr', Buffer.from('def'))
  expect(textOf(ring.read(1, 3))).toEqual(['bc', '!d'])
  expect(ring.read(99, 10)).toEqual({ offset: 6, pieces: [] })
  expect(new OutputRing().read(5, 10)).toEqual({ offset: 0, pieces: [] })
})

test('one that changes streams at every byte is bounded too', () => {
  const ring = new OutputRing()
  for (let index = 0; index < 100_000; index++) ring.append(index % 2 ? 'stderr' : 'stdout', Buffer.from('x'))
  const { pieces } = ring.read(0, 1_000_000)
  expect([ring.end, pieces.length <= 4097, pieces.length > 4000]).toEqual([100_000, true, true])
})
