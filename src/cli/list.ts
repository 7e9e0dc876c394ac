import type { Given } from './command-line.ts'
import { printable } from './printable.ts'

/** The columns of a list, from left to right. The first one identifies the row. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => string>>

/**
 * Prints a list: with --json `rows` as an array, with --quiet only the first column, in a terminal with titles, and
 * otherwise with tabs between the columns.
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
