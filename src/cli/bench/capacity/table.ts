import { describeMachine } from '../table.ts'
import { show } from './extrapolate.ts'
import type { CapacityReport } from './report.ts'

/** Shows the report as two tables: the measured figures, and the calculated ones. */
export function toCapacityTable(report: CapacityReport): string {
  const tables = tablesOf(report).map(({ head, rows }) => {
    const all = [head, ...rows]
    const widths = head.map((_, column) => Math.max(...all.map(row => row[column]?.length ?? 0)))
    // Figures are aligned to the right, words to the left.
    const align = (cell: string, column: number) =>
      column === 1 || column === 2 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)
    return all.map(row => row.map(align).join('  ').trimEnd()).join('\n')
  })
  return [describe(report), ...tables, ...notesOf(report)].join('\n\n')
}

/** Shows the same tables in Markdown. */
export function toCapacityMarkdown(report: CapacityReport): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const tables = tablesOf(report).map(({ head, rows }) => {
    const rule = line(head.map((_, column) => (column === 1 || column === 2 ? '---:' : '---')))
    return [line(head), rule, ...rows.map(line)].join('\n')
  })
  return [describe(report), ...tables, ...notesOf(report)].join('\n\n')
}

const describe = ({ quick, ...report }: CapacityReport) =>
  `${describeMachine({ ...report, quick: false })}${quick ? ', quick: few samples' : ''}`

/** Both tables have the same number of columns. */
function tablesOf({ measured, calculated }: CapacityReport): { head: string[]; rows: string[][] }[] {
  return [
    {
      head: ['measured', '', 'n', 'how'],
      rows: measured.map(({ name, unit, value, n, taken }) => [
        name,
        value === null ? '–' : `${show(value)} ${unit}`,
        `${n}`,
        value === null ? 'not measured' : taken,
      ]),
    },
    {
      head: ['so this machine holds', '', '', 'by'],
      rows: calculated.map(({ name, unit, value, arithmetic }) => [
        name,
        unit === '' ? value.toLocaleString('en-US') : `${show(value)} ${unit}`,
        '',
        arithmetic,
      ]),
    },
  ]
}

function notesOf({ notMeasured, tooBusy }: CapacityReport): string[] {
  const notes = [
    ...notMeasured.map(({ group, why }) => `not measured: ${group}: ${why}`),
    ...(tooBusy ? ['The machine did other things meanwhile: do not trust these figures.'] : []),
  ]
  return notes.length > 0 ? [notes.join('\n')] : []
}
