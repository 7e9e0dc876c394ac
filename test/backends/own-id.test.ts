import { afterAll, beforeEach, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDataDirectoryId } from '../../plugins/docker/data-directory-id.ts'
import { createLabel } from '../../plugins/e2b/label.ts'

const parent = mkdtempSync(join(tmpdir(), 'threadbox-own-id-'))
afterAll(() => rmSync(parent, { recursive: true }))
let count = 0
let [first, second] = ['', '']
beforeEach(() => {
  count += 1
  first = join(parent, `first-${count}`)
  second = join(parent, `second-${count}`)
})

const kinds = [
  {
    name: 'containers',
    find: (directory: string) => createDataDirectoryId(directory).find(),
    make: (directory: string) => createDataDirectoryId(directory).make(),
  },
  {
    name: 'sandboxes on E2B',
    find: async (directory: string) =>
      createLabel(directory).exists() ? await createLabel(directory).get() : undefined,
    make: (directory: string) => createLabel(directory).get(),
  },
]

for (const { name, find, make } of kinds) {
  test(`a copy of a data directory has no ${name} of the original: regression`, async () => {
    const id = await make(first)
    cpSync(first, second, { recursive: true })
    expect(await find(second)).toBeUndefined()
    const other = await make(second)
    expect(other).not.toBe(id)
    expect([await find(first), await find(second)]).toEqual([id, other])
  })

  test(`a data directory that was moved keeps its ${name}`, async () => {
    const id = await make(first)
    renameSync(first, second)
    expect(await find(second)).toBe(id)
    // It is at home there now: a copy of it is told from it.
    cpSync(second, first, { recursive: true })
    expect([await find(first), await find(second)]).toEqual([undefined, id])
  })
}

test('a data directory of an earlier version keeps its containers', async () => {
  const id = await createDataDirectoryId(first).make()
  writeFileSync(join(first, 'docker-id'), `${id}\n`)
  expect(createDataDirectoryId(first).find()).toBe(id)
  expect(readFileSync(join(first, 'docker-id'), 'utf8')).toBe(`${id}\n${first}\n`)
})
