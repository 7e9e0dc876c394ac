import { expect, test } from 'bun:test'
import { makePlaceholder } from '../../src/core/secrets/placeholder.ts'

const shapes: [value: string, shape: RegExp][] = [
  [`ghp_${'aB3'.repeat(12)}`, /^ghp_[A-Za-z0-9]{36}$/],
  [`github_pat_${'aB3dE'.repeat(4)}11_${'aB3d'.repeat(14)}xyz`, /^github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}$/],
  [`sk-ant-api03-${'a-_B'.repeat(24)}`, /^sk-ant-api03-[A-Za-z0-9]{96}$/],
  [`sk-proj-${'aB3d'.repeat(20)}`, /^sk-proj-[A-Za-z0-9]{80}$/],
  ['AKIAIOSFODNN7EXAMPLE', /^AKIA[A-Z0-9]{16}$/],
  ['d41d8cd98f00b204e9800998ecf8427e', /^[0-9a-f]{32}$/],
  ['6f9619ff-8b86-d011-b42d-00cf4fc964ff', /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/],
  // Nothing of a value of no known shape, and nothing that could be guessed of a short one.
  ['correct-horse-battery-staple', /^[A-Za-z0-9]{40}$/],
  ['hunter2', /^[A-Za-z0-9]{40}$/],
  ['sk-short', /^sk-[A-Za-z0-9]{40}$/],
  ['x'.repeat(5000), /^[A-Za-z0-9]{40}$/],
]

test.each(shapes)('the placeholder for %s has its shape and nothing else of it', (value, shape) => {
  const made = Array.from({ length: 20 }, () => makePlaceholder(value))
  for (const placeholder of made) {
    expect(placeholder).toMatch(shape)
    expect(placeholder).not.toBe(value)
  }
  expect(new Set(made).size).toBe(made.length)
})

test('a placeholder is never the value, nor has it in it', () => {
  // So short that chance would often lead there.
  for (let round = 0; round < 200; round++) expect(makePlaceholder('aaaa')).not.toContain('aaaa')
})
