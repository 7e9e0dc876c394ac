import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { parsers } from './parsers.ts'

/** What takes longer would take minutes or hours. */
const MAX_MS = 5000

setDefaultTimeout(180_000)

describe('64 KB of whatever is awkward is read in linear time: regression', () => {
  test.each(Object.keys(parsers))('%s', async name => {
    // Of its own, to be ended: a regular expression that backtracks hears nobody.
    const measured = Bun.spawn([process.execPath, join(import.meta.dir, 'measure.ts'), name], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 120_000,
      killSignal: 'SIGKILL',
    })
    const [text, problem] = await Promise.all([measured.stdout.text(), measured.stderr.text(), measured.exited])
    expect(problem).toBe('')
    expect(text).not.toBe('')
    expect(Number(text)).toBeLessThan(MAX_MS)
  })
})
