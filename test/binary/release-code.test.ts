import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { releaseCode } from '../../src/cli/release-code.ts'

/** Memory of this process's own code, in KB. */
function residentCode(): number {
  const mappings = readFileSync('/proc/self/smaps', 'utf8').split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/)
  return mappings
    .filter(mapping => / r-xp /.test(mapping) && mapping.split('\n')[0]?.endsWith(` ${process.execPath}`))
    .map(mapping => Number(/^Rss: +(\d+) kB/m.exec(mapping)?.[1]))
    .reduce((sum, each) => sum + each, 0)
}

test('code that a process has run is given up, and comes back when it runs again', () => {
  const before = residentCode()
  releaseCode()
  const after = residentCode()
  expect(after).toBeGreaterThan(0)
  expect(after).toBeLessThan(before / 2)
  expect(JSON.parse(JSON.stringify({ again: [1, 'two'] }))).toEqual({ again: [1, 'two'] })
})
