/** A cell that a spreadsheet would run as a formula is made text. */
function cell(value: unknown): string {
  const text = String(value ?? '')
  const harmless = /^[=+\-@\t\r]/.test(text) && typeof value === 'string' ? `'${text}` : text
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

/** Rows as RFC 4180 has them, with the fields of the first as the head. */
export function toCsv(rows: readonly object[]): string {
  const names = Object.keys(rows[0] ?? {})
  const lines = rows.map(row => names.map(name => cell(Reflect.get(row, name))).join(','))
  return [names.join(','), ...lines, ''].join('\r\n')
}

/** Gives the browser's user a file. */
export function saveCsv(name: string, rows: readonly object[]): void {
  const url = URL.createObjectURL(new Blob([toCsv(rows)], { type: 'text/csv' }))
  Object.assign(document.createElement('a'), { href: url, download: name }).click()
  URL.revokeObjectURL(url)
}
