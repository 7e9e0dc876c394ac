import { type Band, findDoubled } from './bands.ts'
import type { Day, Plan } from './run-day.ts'

/** Prints what the day was like, as text. */
export function print(
  report: Plan & Day & { bands: readonly Band[]; cores: number; loadBefore: number; loadAfter: number },
): void {
  const { conversations, messages, cores, loadBefore, loadAfter, samples, looks, others, bands } = report
  const [first, last] = [looks[0], looks.at(-1)]
  if (!first || !last) return
  const seconds = (last.atMs - first.atMs) / 1000
  const problems = samples.flatMap(({ problem }) => problem ?? [])
  const used = last.cpuSeconds - first.cpuSeconds
  const most = Math.max(...looks.map(({ rssMb }) => rssMb))
  const grownKb = (last.databaseMb - first.databaseMb) * 1024
  const fixed = (value: number, digits = 0) => value.toFixed(digits)
  const lines = [
    `${conversations} conversations of ${messages} messages, a day in ${fixed(seconds)} s; ${cores} cores, load ${fixed(loadBefore, 1)} to ${fixed(loadAfter, 1)}`,
    `messages: ${samples.length}; not sent, since the day was over: ${conversations * messages - samples.length}; failed: ${problems.length}${problems[0] ? `, as: ${problems[0]}` : ''}`,
    `CPU: server ${fixed(used)} s, ${fixed((used * 1000) / samples.length, 1)} ms a message; fake cloud ${fixed(others.cloud)} s, this script ${fixed(others.simulator)} s`,
    `memory of the server: ${fixed(first.rssMb)} MB at first, ${fixed(most)} MB at most, ${fixed(last.rssMb)} MB at the end`,
    `database: ${fixed(last.databaseMb)} MB, ${fixed(grownKb / samples.length, 1)} KB a message`,
    '',
    ...toTable(bands),
    '',
    describeDoubled(bands),
  ]
  console.log(lines.join('\n'))
}

function toTable(bands: readonly Band[]): string[] {
  const head = ['messages/s', 'n', 'CPU of a core', 'first chunk: p50', 'p99', 'with a new sandbox: p50', 'p99']
  const ms = (value: number) => `${value.toFixed(0)} ms`
  const rows = bands.map(band => [
    ...[band.rate.toFixed(0), `${band.messages}`, `${(band.cpu * 100).toFixed(0)} %`],
    ...[band.p50, band.p99, band.p50WithCreate, band.p99WithCreate].map(ms),
  ])
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---:')), ...rows.map(line)]
}

function describeDoubled(bands: readonly Band[]): string {
  const doubled = findDoubled(bands)
  if (doubled) return `p99 has doubled at ${doubled.rate.toFixed(0)} messages a second`
  return `p99 has not doubled at ${(bands.at(-1)?.rate ?? 0).toFixed(0)} messages a second, the most of the day`
}
