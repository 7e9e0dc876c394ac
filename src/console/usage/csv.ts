/** Makes a text of a cell that a spreadsheet would run as a formula. */
function cell(value: unknown): string {
  const text = String(value ?? '')
  const harmless = /^[=+\-@\t\r]/.test(text) && typeof value === 'string' ? `'${text}` : text
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

/** Writes rows as RFC 4180 describes. The first row's field names are the head. */
export function toCsv(rows: readonly object[]): string {
  const names = Object.keys(rows[0] ?? {})
  const lines = rows.map(row => names.map(name => cell(Reflect.get(row, name))).join(','))
  return [names.join(','), ...lines, ''].join('\r\n')
}

/** Offers a file to the browser's user as a download. */
export function saveCsv(name: string, rows: readonly object[]): void {
  const url = URL.createObjectURL(new Blob([toCsv(rows)], { type: 'text/csv' }))
  Object.assign(document.createElement('a'), { href: url, download: name }).click()
  URL.revokeObjectURL(url)
}
