import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { parsers } from './parsers.ts'

/** What takes longer would take minutes or hours. */
const MAX_MS = 20_000

describe('64 KB of whatever is awkward is read in linear time: regression', () => {
  let slowestMs: Map<string, number>

  beforeAll(async () => {
    // In a process that can be ended: a regular expression that backtracks hears nobody, and those after it have no time then.
    const measured = Bun.spawn([process.execPath, join(import.meta.dir, 'measure.ts')], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 240_000,
      killSignal: 'SIGKILL',
    })
    const [text, problem] = await Promise.all([measured.stdout.text(), measured.stderr.text(), measured.exited])
    expect(problem).toBe('')
    slowestMs = new Map(
      text
        .trim()
        .split('\n')
        .map(line => JSON.parse(line)),
    )
  }, 300_000)

  test.each(Object.keys(parsers))('%s', name => {
    expect(slowestMs.get(name)).toBeLessThan(MAX_MS)
  })
})
