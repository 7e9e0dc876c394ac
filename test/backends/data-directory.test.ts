import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { realDataDirectory } from '../../plugins/nsjail/host/layout.ts'

const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'threadbox-data-')))
const link = join(scratch, 'link')
mkdirSync(join(scratch, 'real/data'), { recursive: true })
symlinkSync(join(scratch, 'real'), link)

afterAll(() => rmSync(scratch, { recursive: true }))

test.each([
  ['that exists', join(link, 'data'), join(scratch, 'real/data')],
  ['that does not exist yet', join(link, 'later/data'), join(scratch, 'real/later/data')],
  ['that is named relative to the server', relative(process.cwd(), join(link, 'later')), join(scratch, 'real/later')],
])('a data directory below a link %s is known by its real path, and not made', (_, path, real) => {
  expect(realDataDirectory(path)).toBe(real)
  expect(existsSync(join(scratch, 'real/later'))).toBe(false)
})
