import { expect } from 'bun:test'
import { join } from 'node:path'

const page = join(import.meta.dir, '../../docs/e2b.md')

/** Expects a table of docs/e2b.md to be so, heads first. With THREADBOX_WRITE_MATRIX it is written there instead. */
export async function checkTable(name: string, [head = [], ...rows]: readonly (readonly string[])[]): Promise<void> {
  const [begin, end] = [`<!-- made by scripts/e2b-matrix: ${name} -->\n\n`, `\n\n<!-- end of ${name} -->`]
  const drawn = [head, head.map(() => '---'), ...rows].map(row => `| ${row.join(' | ')} |`).join('\n')
  const text = await Bun.file(page).text()
  const [before = '', rest = ''] = text.split(begin)
  const [written = '', after] = rest.split(end)
  if (after === undefined) throw new Error(`docs/e2b.md has no place for ${name}`)
  if (process.env.THREADBOX_WRITE_MATRIX) await Bun.write(page, [before, begin, drawn, end, after].join(''))
  else expect(written).toBe(drawn)
}
