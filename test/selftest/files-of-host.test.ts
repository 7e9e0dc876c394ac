import { afterAll, expect, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAsMade, makeAgain, makeHostFiles } from '../../src/selftest/files-of-host.ts'

const SECRET = 'secret-of-this-test'
const place = mkdtempSync(join(tmpdir(), 'threadbox-host-files-'))
afterAll(() => rmSync(place, { recursive: true }))

const makeDirectory = async (): Promise<string> => {
  const directory = join(place, crypto.randomUUID())
  await makeHostFiles(directory, SECRET)
  return directory
}

test('every user may change the files of the host and their directory', async () => {
  const directory = await makeDirectory()
  expect(statSync(directory).mode & 0o777).toBe(0o777)
  for (const name of ['secret', 'target']) {
    expect(statSync(join(directory, name)).mode & 0o777).toBe(0o666)
    expect(await isAsMade(directory, name, SECRET)).toBe(true)
  }
})

test('another user cannot have a file of the machine overwritten or its mode changed regression', async () => {
  const directory = await makeDirectory()
  const victim = join(place, 'victim')
  writeFileSync(victim, SECRET, { mode: 0o600 })
  rmSync(join(directory, 'secret'))
  symlinkSync(victim, join(directory, 'secret'))

  expect(await isAsMade(directory, 'secret', SECRET)).toBe(false)
  writeFileSync(victim, 'kept')
  await makeAgain(directory, 'secret', SECRET)

  expect([readFileSync(victim, 'utf8'), statSync(victim).mode & 0o777]).toEqual(['kept', 0o600])
  expect(lstatSync(join(directory, 'secret')).isFile()).toBe(true)
  expect(await isAsMade(directory, 'secret', SECRET)).toBe(true)
  expect(readdirSync(directory).sort()).toEqual(['secret', 'target'])
})

test('another user cannot hold up the selftest by a pipe or an endless file regression', async () => {
  const directory = await makeDirectory()
  for (const name of ['secret', 'target']) rmSync(join(directory, name))
  execFileSync('mkfifo', [join(directory, 'secret')])
  symlinkSync('/dev/zero', join(directory, 'target'))
  expect(await isAsMade(directory, 'secret', SECRET)).toBe(false)
  expect(await isAsMade(directory, 'target', SECRET)).toBe(false)
})
