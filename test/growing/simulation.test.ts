import { expect, test } from 'bun:test'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { findDoubled, toBands } from '../../scripts/simulation/bands.ts'
import { beginnings } from '../../scripts/simulation/day.ts'
import { executable, patiently, temporaryDirectory } from '../support/server.ts'

patiently()
const script = join(import.meta.dir, '../../scripts/simulation/main.ts')

test('a short day passes without a failure, and leaves nothing behind', async () => {
  const TMPDIR = temporaryDirectory()
  const args = ['--conversations', '5', '--messages', '3', '--minutes', '0.04', '--json']
  const child = Bun.spawn([process.execPath, script, executable, ...args], {
    env: { PATH: process.env.PATH ?? '', TMPDIR },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  expect([code, stderr]).toEqual([0, ''])
  const { samples, looks } = JSON.parse(stdout)
  expect(samples.filter(({ problem }: { problem?: string }) => problem)).toEqual([])
  expect(samples.filter(({ isFirst }: { isFirst: boolean }) => isFirst).length).toBeGreaterThan(0)
  for (const { firstChunkMs } of samples) expect(firstChunkMs).toBeGreaterThan(0)
  expect(looks.at(-1).databaseMb).toBeGreaterThan(0)
  expect(readdirSync(TMPDIR)).toEqual([])
  rmSync(TMPDIR, { recursive: true })
})

test('conversations begin all day long, most of them in the hours of work', () => {
  const all = beginnings(10_000)
  expect(all).toEqual(all.toSorted((a, b) => a - b))
  expect(all.filter(at => at < 0 || at >= 1)).toEqual([])
  const ofHour = (hour: number) => all.filter(at => Math.floor(at * 24) === hour).length
  expect(ofHour(3)).toBeGreaterThan(0)
  expect(ofHour(14)).toBeGreaterThan(5 * ofHour(3))
})

test('p99 is told for each rate, and the rate at which it has doubled', () => {
  // Two seconds of 200 messages and two of 600, of which each hundredth is slow.
  const looks = [0, 1, 2, 3, 4].map(second => ({
    atMs: second * 1000,
    cpuSeconds: second / 2,
    rssMb: 1,
    databaseMb: 1,
  }))
  const messages = (fromMs: number, count: number, slowMs: number) =>
    Array.from({ length: count }, (_, index) => ({
      atMs: fromMs + (index * 1000) / count,
      isFirst: false,
      firstChunkMs: index % 50 === 0 ? slowMs : 5,
    }))
  const samples = [0, 1000]
    .flatMap(at => messages(at, 200, 20))
    .concat([2000, 3000].flatMap(at => messages(at, 600, 40)))
  const bands = toBands(samples, looks, 100)
  expect(bands.map(({ rate, messages: n, p50, p99, cpu }) => ({ rate, n, p50, p99, cpu }))).toEqual([
    { rate: 200, n: 400, p50: 5, p99: 20, cpu: 0.5 },
    { rate: 600, n: 1200, p50: 5, p99: 40, cpu: 0.5 },
  ])
  expect(findDoubled(bands)?.rate).toBe(600)
  expect(findDoubled(bands.slice(0, 1))).toBeUndefined()
})
