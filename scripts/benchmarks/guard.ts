/** Reads what `threadbox bench --json --against` prints. Fails when a row became worse by more than a quarter. */
import type { Report } from '../../src/cli/bench/report.ts'

const ALLOWED = 1.25

type Row = Report['rows'][number]

/** How much worse a row became; above 1 it is worse. Rows with a baseline compare ratios, because the machine changes too. */
function toWorsening({ unit, ratio, p50, before }: Row): number | undefined {
  const [after, earlier] = ratio === null ? [p50, before?.p50 ?? null] : [ratio, before?.ratio ?? null]
  if (after === null || earlier === null || earlier === 0) return undefined
  return unit === '/s' || unit === 'MiB/s' ? earlier / after : after / earlier
}

const report: Report = await Bun.stdin.json()
// A baseline measures the machine, not the build.
const baselines = new Set(report.rows.map(({ baseline }) => baseline))
const judged = report.rows.filter(({ key }) => !baselines.has(key))
const worse = judged.filter(row => (toWorsening(row) ?? 0) > ALLOWED)
for (const row of worse) console.log(`worse by ${(toWorsening(row) ?? 0).toFixed(2)} ×: ${row.name}`)
const broken = judged.filter(row => row.notMeasured !== null && row.before?.notMeasured === null)
for (const { name, notMeasured } of broken) console.log(`not measured any more: ${name}: ${notMeasured}`)
if (report.tooBusy) console.log('The machine did other things meanwhile: measure again before you believe it.')
if (worse.length + broken.length === 0) console.log(`no row of ${judged.length} is worse by more than a quarter`)
process.exit(worse.length + broken.length > 0 ? 1 : 0)
