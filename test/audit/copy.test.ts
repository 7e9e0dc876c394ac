import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startAuditCopy } from '../../src/core/audit/copy.ts'
import { appendAudit } from '../../src/db/audit.ts'
import { openDatabase } from '../../src/db/open.ts'
import { until } from '../support/until.ts'

const directory = mkdtempSync(join(tmpdir(), 'threadbox-audit-copy-'))
const disk = join(directory, 'disk')
const run = (...words: string[]) => expect(Bun.spawnSync(words).success).toBe(true)
beforeAll(() => {
  mkdirSync(disk)
  run('mount', '-t', 'tmpfs', '-o', 'size=16k', 'none', disk)
})
afterAll(() => {
  run('umount', disk)
  rmSync(directory, { recursive: true })
})

test('the copy of the audit log has each row once after a full disk, and no half line, regression', async () => {
  using db = openDatabase(join(directory, 'threadbox.db'))
  const add = (count: number) =>
    appendAudit(
      db,
      Array.from({ length: count }, () => ({ actor: {}, action: 'a', target: {}, outcome: 'done' })),
    )
  const file = join(disk, 'audit.jsonl')
  const text = () => (existsSync(file) ? readFileSync(file, 'utf8') : '')
  const logged: string[] = []
  add(3)
  const copying = startAuditCopy({ db, log: line => logged.push(line) }, file)
  await until(() => text().split('\n').length === 4)
  add(500)
  await until(() => logged.length > 0)
  expect(logged).toEqual([expect.stringContaining('--audit-file: ')])
  run('mount', '-o', 'remount,size=1m', disk)
  await copying.close()
  const seqs = text()
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).entry.seq)
  expect(seqs).toEqual(Array.from({ length: 503 }, (_, index) => index + 1))
})
