import { expect, test } from 'bun:test'
import { extrapolate } from '../../src/cli/bench/capacity/extrapolate.ts'
import { measuredRows } from '../../src/cli/bench/capacity/rows.ts'
import { useOneOffs } from '../temporary/support.ts'

const oneOffs = useOneOffs()

test('a quick look measures what one more of each takes, says what follows and how, and leaves nothing behind', async () => {
  const { code, stdout, stderr } = await oneOffs.run(['bench', '--quick', '--capacity', '--json'])
  const report = JSON.parse(stdout)
  expect(report.notMeasured).toEqual([])
  expect([code, stderr.replaceAll(/^threadbox: the machine is busy.*\n/gm, '')]).toEqual([0, ''])
  expect(report.measured.map(({ key }: { key: string }) => key)).toEqual(Object.keys(measuredRows))
  for (const { key, value, n } of report.measured) {
    // A hundredth of a second is the least CPU time that Linux counts, and a few of each are less than what a server's memory varies by.
    if (['reader-memory', 'reader-cpu', 'active'].includes(key)) continue
    expect([key, value > 0, n > 0]).toEqual([key, true, true])
  }
  const figureOf = (key: string) => report.measured.find((row: { key: string }) => row.key === key).value
  // Its log is compressed, its messages stay.
  expect(figureOf('chat-kept')).toBeLessThan(figureOf('chat-fresh'))
  // 50 words each way are more than half a kilobyte.
  expect(figureOf('chat-kept')).toBeGreaterThan(0.5)
  const calculated = new Map(report.calculated.map(({ key, value }: { key: string; value: number }) => [key, value]))
  const active = figureOf('active')
  expect(calculated.get('active-gib')).toBe(active > 0 ? Math.floor(1024 / active) : undefined)
  expect(calculated.get('stopped-gib')).toBe(Math.floor(1024 / figureOf('stopped')))
  expect(await oneOffs.left()).toEqual([])
})

test('each line that follows is calculated as it says', () => {
  const n = 1
  const lines = extrapolate(
    {
      idle: { value: 60, n },
      active: { value: 5, n },
      stopped: { value: 0.5, n },
      chats: { value: 100, n },
      'chat-cpu': { value: 4, n },
      'chat-fresh': { value: 12, n },
      'chat-kept': { value: 5, n },
      'reader-cpu': { value: 20, n },
      'reader-memory': { value: 32, n },
    },
    { memoryMb: 8060, diskMb: 100_000 },
  )
  const evaluate = (arithmetic: string) => {
    const [formula = ''] = arithmetic.split(/[:;]|, always/)
    const plain = formula
      .replaceAll(/[A-Za-zµ]+/g, '')
      .replaceAll(',', '')
      .replaceAll(/(\d) *\/(?= )/g, '$1')
      .replaceAll('×', '*')
      .replaceAll('÷', '/')
      .replaceAll('−', '-')
    return Number(new Function(`return ${plain}`)())
  }
  const scale: Record<string, number> = { 'database-day': 1024 * 1024, 'database-fresh': 1024 }
  for (const { key, value, arithmetic } of lines)
    expect([key, Math.floor(evaluate(arithmetic) / (scale[key] ?? 1))]).toEqual([key, Math.floor(value)])
  expect(lines.map(({ key }) => key)).toEqual([
    'active-gib',
    'active-here',
    'stopped-gib',
    'stopped-here',
    'chats-most',
    'readers-most',
    'readers-gib',
    'database-day',
    'database-fresh',
    'database-chats',
  ])
  expect(extrapolate({ active: { value: 0, n } }, { memoryMb: 1, diskMb: 1 })).toEqual([])
})

test('a backend that cannot run here leaves it unmeasured, says why, and fails', async () => {
  const { code, stdout } = await oneOffs.run(['bench', '--quick', '--capacity', '--nsjail-path', '/none'])
  expect(code).toBe(1)
  expect(stdout).toMatch(/^chats +– +0 +not measured$/m)
  expect(stdout).toMatch(/^not measured: sandboxes: .*nsjail/m)
})

test.each([['exec'], ['--against=/none']])('--capacity with %p is refused', async word => {
  const { code, stderr } = await oneOffs.run(['bench', '--capacity', word])
  expect([code, stderr]).toEqual([2, expect.stringContaining('--capacity measures this executable alone')])
})
