import { expect, test } from 'bun:test'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from '../support/server.ts'

test('a script that imports the guard and the bare server starts the program, and not itself', async () => {
  const directory = temporaryDirectory()
  const started = join(directory, 'started')
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'other-program.ts')], {
    env: { ...process.env, STARTED: started },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [printed, problems] = await Promise.all([child.stdout.text(), child.stderr.text()])
  expect({ printed, problems, code: await child.exited }).toEqual({ printed: '0\n', problems: '', code: 0 })
  expect(readFileSync(started, 'utf8')).toBe('once\n')
  rmSync(directory, { recursive: true })
})
