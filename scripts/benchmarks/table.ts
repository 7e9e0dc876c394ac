/** What a benchmark measures, and how it is told. */
export interface Line {
  name: string
  unit: 'ms' | 'MB'
  /** The samples of each round. */
  rounds: number[][]
  baseline?: Line
  goal?: { text: string; isMet: (line: Line) => boolean }
}

export const line = (name: string, options: Partial<Line> = {}): Line => ({ name, unit: 'ms', rounds: [], ...options })

export const atMost = (limit: number, unit: Line['unit'], percent = 50) => ({
  text: `p${percent} ≤ ${limit} ${unit}`,
  isMet: (measured: Line) => percentile(measured.rounds.flat(), percent) <= limit,
})

export function percentile(samples: readonly number[], percent: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN
}

/** The median of the rounds' ratios: one noisy round does not decide. */
export function ratioOf({ rounds, baseline }: Line): number {
  const ratios = rounds.map((round, index) => percentile(round, 50) / percentile(baseline?.rounds[index] ?? [], 50))
  return percentile(ratios, 50)
}

export function report(lines: readonly Line[]): void {
  const head = ['', 'n', 'p50', 'p95', 'p99', 'ratio', 'goal', '']
  const rows = lines.map(each => {
    const samples = each.rounds.flat()
    const digits = each.unit === 'ms' ? 2 : 1
    const at = (percent: number) => `${percentile(samples, percent).toFixed(digits)} ${each.unit}`
    const ratio = each.baseline ? `${ratioOf(each).toFixed(2)} ×` : ''
    const verdict = each.goal ? (each.goal.isMet(each) ? 'met' : 'MISSED') : ''
    return [each.name, `${samples.length}`, at(50), at(95), at(99), ratio, each.goal?.text ?? '', verdict]
  })
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map(row => row[column]?.length ?? 0)))
  for (const row of [head, ...rows]) {
    const cells = row.map((cell, column) =>
      column === 0 || column > 5 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    )
    console.log(cells.join('  ').trimEnd())
  }
  if (lines.some(each => each.baseline)) {
    console.log('\nratio: to the line of its baseline above it, the median of the rounds’ ratios of p50')
  }
}

/** Does the work so often, one after the other, as one round of a line. */
export async function timed(into: Line, count: number, work: () => Promise<unknown>): Promise<void> {
  const samples = []
  for (let index = 0; index < count; index++) {
    const startedAt = performance.now()
    await work()
    samples.push(performance.now() - startedAt)
  }
  into.rounds.push(samples)
}
