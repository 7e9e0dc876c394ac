import { expect, test } from 'bun:test'
import { ApiError } from '../../src/errors.ts'
import { findReadableOwnFiles } from '../../src/selftest/probes/guest-own-files.ts'

const guest = '/proc/7/'

/** A sandbox whose guest says that the files of its thread 7 are not there, and refuses all others. Each list of threads is the next one. */
const subjectWith = (...threads: string[]): any => {
  const answer = async (path: string) => {
    if (path === '/proc/meminfo') return { body: 'MemTotal' }
    throw new ApiError(path.startsWith(guest) ? 'file_not_found' : 'invalid_request', path)
  }
  const list = async (path: string, depth?: number) => (depth === undefined ? answer(path) : [])
  const spawn = async ({ command }: { command: unknown }) => ({
    stdout: new Blob([Array.isArray(command) ? `${threads.shift()}\nend\n` : '']).stream(),
    stderr: new Blob([]).stream(),
    exited: Promise.resolve({ exitCode: 0 }),
  })
  const files = { read: answer, write: answer, info: answer, rename: answer, remove: answer, list }
  return { environment: { spawn, files, executable: ['guest'] }, signal: new AbortController().signal, secret: '' }
}

test('the files of a thread of the guest that has ended meanwhile are no leak: regression', async () => {
  expect(await findReadableOwnFiles(subjectWith('1\n7', '1'))).toEqual([])
})

test('the guest looks for the files of a thread that still runs: that is a leak', async () => {
  const found = await findReadableOwnFiles(subjectWith('1\n7', '1\n7'))
  expect(found).toContain('reading /proc/7/environ: file_not_found')
})
