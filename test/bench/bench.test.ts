import { describe, expect, test } from 'bun:test'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { listRows, partNames, type RowKey } from '../../src/cli/bench/rows.ts'
import { startPeer } from '../../src/cli/bench/start-peer.ts'
import { processIds, readText } from '../support/leftovers.ts'
import { executable } from '../support/server.ts'
import { until } from '../support/until.ts'
import { useOneOffs } from '../temporary/support.ts'

const oneOffs = useOneOffs()

/** All parts one after the other, on a machine that may be busy with other tests. */
const ALL_PARTS_MS = 300_000

interface Report {
  rows: Record<string, any>[]
  [name: string]: any
}

/** What a machine may have or not. */
const mayBeMissing = ['no Docker engine', 'no IPv4 address but those of its loopback']

async function benchJson(...args: string[]): Promise<Report> {
  const { code, stdout, stderr } = await oneOffs.run(['bench', '--json', ...args])
  const failures =
    stdout
      .match(/"(notMeasured|incomplete)": ".*"/g)
      ?.filter(line => !mayBeMissing.some(part => line.includes(part))) ?? []
  expect([code, withoutRemarks(stderr), failures]).toEqual([0, '', []])
  return JSON.parse(stdout)
}

/** How busy the machine is depends on what else it does. */
const withoutRemarks = (stderr: string) => stderr.replaceAll(/^threadbox: the machine is busy.*\n/gm, '')

test(
  'a quick run measures every row beside its baseline, and leaves nothing behind',
  async () => {
    const report = await benchJson('--quick')
    expect(report).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      executable: expect.any(String),
      quick: true,
      machine: {
        cores: expect.any(Number),
        processor: expect.any(String),
        memoryMb: expect.any(Number),
        kernel: expect.any(String),
        load: expect.any(Number),
        busy: expect.any(Number),
      },
      tooBusy: expect.any(Boolean),
      startedAt: expect.stringMatching(/^\d{4}-.*Z$/),
      seconds: expect.any(Number),
      rows: expect.any(Array),
    })
    expect(report.rows.map(({ key }) => key)).toEqual(partNames.flatMap(listRows).map(([key]) => key))
    for (const row of report.rows) {
      // Where the machine has an engine, and an address beside its loopback, these parts are measured.
      if (mayBeMissing.some(part => row.notMeasured?.includes(part))) {
        expect(['docker', 'connections']).toContain(row.part)
        continue
      }
      expect([row.key, row.notMeasured]).toEqual([row.key, null])
      expect([row.key, row.met]).toEqual([row.key, null])
      expect(row.n).toBeGreaterThan(0)
      if (row.unit === 'failed') expect(row.p99).toBe(0)
      // Linux counts CPU time in hundredths of a second: a small run may have used less.
      else if (row.unit !== 's/GiB' && row.unit !== 'µs') expect([row.key, row.p50 > 0]).toEqual([row.key, true])
      expect(row.p50 <= row.p95 && row.p95 <= row.p99).toBeTrue()
      if (row.baseline && row.unit !== 'µs') expect([row.key, row.ratio > 0]).toEqual([row.key, true])
    }
    const find = (key: RowKey) => report.rows.find(row => row.key === key)!
    expect(find('create-spaced').p50).toBeGreaterThanOrEqual(find('create-answer').p50)
    expect(find('delete-dead').p99).toBeGreaterThanOrEqual(find('delete').p50)
    expect(await oneOffs.left()).toEqual([])
  },
  ALL_PARTS_MS,
)

test('the bare server shows no file at an address that others reach, regression', async () => {
  await using peer = await startPeer()
  const path = `/file?path=${encodeURIComponent(import.meta.path)}`
  expect((await fetch(peer.url + path)).status).toBe(200)
  // A machine may have no address but those of its loopback.
  if (!peer.outer) return
  expect((await fetch(peer.outer.url + path)).status).toBe(404)
  expect(await (await fetch(`${peer.outer.url}/stream?count=3`)).bytes()).toHaveLength(3)
})

describe('in the middle', () => {
  const childrenOf = (pid: number) =>
    processIds().filter(id => new RegExp(`^PPid:\\t${pid}$`, 'm').test(readText(`/proc/${id}/status`)))
  const isAlive = (pid: number) => readText(`/proc/${pid}/cmdline`) !== ''

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGKILL', 137],
  ] as const)('%s ends server, bare server and sandboxes, and leaves nothing', async (signal, code) => {
    const child = oneOffs.spawn(['bench', 'create'])
    await until(() => globSync(join(oneOffs.directory, '../data/*/sandboxes/env_*')).length > 0)
    const started = childrenOf(child.pid)
    // The guard, the bare server and the server.
    expect(started.length).toBeGreaterThanOrEqual(3)
    child.kill(signal)
    expect(await child.exited).toBe(code)
    await until(() => !started.some(isAlive))
    if (signal === 'SIGKILL') await until(async () => (await oneOffs.left()).length === 0)
    expect(await oneOffs.left()).toEqual([])
  })
})

test('two executables are measured in the same rounds', async () => {
  const report = await benchJson('--quick', '--against', executable, 'exec')
  expect(report.against).toEqual({ executable, version: report.version })
  const row = report.rows.find(({ key }) => key === 'exec')!
  expect(row.before).toEqual({
    n: row.n,
    p50: expect.any(Number),
    p95: expect.any(Number),
    p99: expect.any(Number),
    ratio: expect.any(Number),
    notMeasured: null,
  })
  expect(row.change).toBeGreaterThan(0)
})

test('only the parts that are named are measured, with the baselines of others, as a table', async () => {
  const { code, stdout } = await oneOffs.run(['bench', '--quick', 'base'])
  expect(code).toBe(0)
  const [machine, , head, ...rows] = stdout.split('\n')
  expect(machine).toMatch(/^threadbox \d\S+, Linux \S+, \d+ cores .*, load \d/)
  expect(head).toMatch(/^ +n +p50 +p95 +p99 +ratio +goal$/)
  expect(rows[0]).toMatch(/^fork\+exec of bash -c true +\d+ +\d+\.?\d* ms/)
  expect(rows[1]).toMatch(/^create \+ first exec, named base +\d+ .* ms +\d+\.\d+ × +≤ 4 ×$/)
  expect(rows[2]).toBe('')
})

test('--markdown prints the table as Markdown', async () => {
  const { stdout } = await oneOffs.run(['bench', '--quick', '--markdown', 'base'])
  const lines = stdout.split('\n').filter(line => line.startsWith('|'))
  expect(lines[0]).toBe('|  | n | p50 | p95 | p99 | ratio | goal |  |')
  expect(lines[1]).toBe('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |')
  expect(lines[3]).toMatch(/^\| create \+ first exec, named base \| \d+ \| .* \| ≤ 4 × \| {2}\|$/)
})

test.each([
  [['exce'], /^threadbox: no such part: exce; did you mean exec\? There are: exec, create, .*, memory\n$/],
  [['--against', '/none'], /^threadbox: --against: \/none is no threadbox that runs\n$/],
  [['--json', '--markdown'], /^threadbox: --json or --markdown: one of them\n$/],
])('bench %p is refused', async (args, expected) => {
  const { code, stdout, stderr } = await oneOffs.run(['bench', ...args])
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toMatch(expected)
})

test('a backend that cannot run here leaves its parts unmeasured, says why, and fails', async () => {
  const { code, stdout } = await oneOffs.run(['bench', '--quick', '--nsjail-path', '/none', 'exec'])
  expect(code).toBe(1)
  expect(stdout).toMatch(/^warm exec over HTTP +0 .*not measured$/m)
  expect(stdout).toMatch(/^not measured: exec: .*nsjail/m)
})
