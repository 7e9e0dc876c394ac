import type { Given } from './command-line.ts'
import { printable } from './printable.ts'

/** What a list shows of each row, from left to right; the first tells the rows apart. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => string>>

/**
 * Prints a list: with --json as an array of what `rows` has, with --quiet the first column alone, in a terminal under
 * titles, and else with tabs between.
 */
export function printList<Row>(given: Given, rows: readonly Row[], columns: Columns<Row>): void {
  if (given.has('json')) {
    console.log(JSON.stringify(rows, null, 2))
    return
  }
  const shown = Object.entries(columns).slice(0, given.has('quiet') ? 1 : undefined)
  const cells = rows.map(row => shown.map(([, cell]) => printable(cell(row)).replaceAll('\n', ' ')))
  if (!process.stdout.isTTY || given.has('quiet')) {
    for (const each of cells) console.log(each.join('\t'))
    return
  }
  const titled = [shown.map(([title]) => title.toUpperCase()), ...cells]
  const widths = shown.map((_, column) => Math.max(...titled.map(row => row[column]?.length ?? 0)))
  for (const row of titled)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}
