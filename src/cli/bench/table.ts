import type { Report } from './report.ts'
import type { Result } from './results.ts'
import { describeGoal } from './row.ts'

/** Shows the report as a table, with an explanation. */
export function toTable(report: Report): string {
  const [head, ...rows] = toCells(report)
  const all = [head ?? [], ...rows]
  const widths = (head ?? []).map((_, column) => Math.max(...all.map(row => row[column]?.length ?? 0)))
  const lines = all.map(row =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
  return [describeMachine(report), '', ...lines, '', ...notes(report)].join('\n')
}

/** Shows the same table in Markdown. */
export function toMarkdown(report: Report): string {
  const [head = [], ...rows] = toCells(report)
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const rule = line(head.map((_, column) => (column === 0 ? '---' : '---:')))
  return [describeMachine(report), '', line(head), rule, ...rows.map(line), '', ...notes(report)].join('\n')
}

function toCells({ rows, against, quick }: Report): string[][] {
  const compared = against ? ['before', 'ratio before', 'change'] : []
  const head = ['', 'n', 'p50', 'p95', 'p99', 'ratio', 'goal', '', ...compared]
  return [head, ...rows.map(row => [...toRow(row, quick), ...(against ? toComparison(row) : [])])]
}

function toRow({ name, unit, n, p50, p95, p99, ratio, goal, met, notMeasured }: Result, quick: boolean): string[] {
  const wanted = goal ? describeGoal(goal, unit) : ''
  if (notMeasured !== null) return [name, '0', '–', '', '', '', wanted, 'not measured']
  const verdict = met === null || quick ? '' : met ? 'met' : 'MISSED'
  return [name, `${n}`, figure(p50, unit), figure(p95, unit), figure(p99, unit), times(ratio), wanted, verdict]
}

function toComparison({ unit, before, change }: Report['rows'][number]): string[] {
  return [figure(before?.p50 ?? null, unit), times(before?.ratio ?? null), times(change ?? null)]
}

const times = (ratio: number | null) => (ratio === null ? '' : `${ratio.toFixed(2)} ×`)

function figure(value: number | null, unit: Result['unit']): string {
  if (value === null) return '–'
  if (unit === 'failed') return `${value}`
  return `${value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)} ${unit}`
}

/** Describes in one line what was measured and where. */
export function describeMachine({
  version,
  machine,
  seconds,
  quick,
  against,
}: Pick<Report, 'version' | 'machine' | 'seconds' | 'quick' | 'against'>): string {
  const { cores, processor, memoryMb, kernel, load } = machine
  const others = against ? `, before: ${against.version} (${against.executable})` : ''
  const size = quick ? ', quick: less than the names say, so goals are not judged' : ''
  return `threadbox ${version}${others}, Linux ${kernel}, ${cores} cores (${processor}), ${memoryMb} MB, load ${load}, ${Math.round(seconds)} s${size}`
}

function notes({ rows, against, tooBusy }: Report): string[] {
  const reasons = rows.flatMap(({ part, notMeasured, incomplete, before }) => [
    ...(notMeasured === null ? [] : [`not measured: ${part}: ${notMeasured}`]),
    ...(incomplete === null ? [] : [`not all rounds of ${part}: ${incomplete}`]),
    ...(before && before.notMeasured !== null ? [`not measured before: ${part}: ${before.notMeasured}`] : []),
  ])
  return [
    'ratio: to the row of its baseline above it, the median of the rounds’ ratios of p50',
    ...(against
      ? ['change: of p50, in the same way; below 1 is better, and above 1 where the unit is a rate (/s, MiB/s)']
      : []),
    ...new Set(reasons),
    ...(tooBusy ? ['The machine did other things meanwhile: do not trust these figures.'] : []),
  ]
}
