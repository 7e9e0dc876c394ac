import { afterAll, beforeAll, expect, test } from 'bun:test'
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { patiently } from '../support/server.ts'

patiently()

const root = join(import.meta.dir, '../..')
const copy = mkdtempSync(join(tmpdir(), 'threadbox-dev-'))
let dev: Bun.Subprocess<'ignore', 'pipe', 'pipe'>
let shown = ''
let seen = Promise.withResolvers<void>()

async function read(stream: ReadableStream<Uint8Array>): Promise<void> {
  for await (const chunk of stream) {
    shown += Buffer.from(chunk).toString()
    seen.resolve()
    seen = Promise.withResolvers()
  }
}

/** Waits until this was shown since the last time. */
async function expectShown(pattern: RegExp): Promise<string> {
  for (;;) {
    const found = pattern.exec(shown)
    if (found) {
      shown = shown.slice(found.index + found[0].length)
      return found[0]
    }
    await seen.promise
  }
}

beforeAll(() => {
  for (const name of ['src', 'plugins', 'scripts']) cpSync(join(root, name), join(copy, name), { recursive: true })
  for (const name of ['package.json', 'bun.lock', 'tsconfig.json']) cpSync(join(root, name), join(copy, name))
  for (const name of ['node_modules', '.cache', 'dist']) symlinkSync(join(root, name), join(copy, name))
  mkdirSync(join(copy, 'data'))
  // Older than the build, but for what a test changes.
  for (const file of new Bun.Glob('src/**').scanSync({ cwd: copy, absolute: true })) utimesSync(file, 0, 0)
  dev = Bun.spawn(['bun', join(copy, 'scripts/dev.ts'), '--port', '0', '--data-dir', join(copy, 'data')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  void read(dev.stdout)
  void read(dev.stderr)
})
afterAll(async () => {
  dev.kill('SIGTERM')
  await dev.exited
  rmSync(copy, { recursive: true })
})

test('the server of `dev` starts anew when a source changes, and ends with it', async () => {
  const first = await expectShown(/listening on http:\S+/)
  expect((await fetch(`${first.replace('listening on ', '')}/health`)).status).toBe(200)
  appendFileSync(join(copy, 'src/http/cors.ts'), '\n')
  await expectShown(/src\/http\/cors\.ts has changed/)
  const second = await expectShown(/listening on http:\S+/)
  expect((await fetch(`${second.replace('listening on ', '')}/health`)).status).toBe(200)
  await expect(fetch(`${first.replace('listening on ', '')}/health`)).rejects.toThrow()
  dev.kill('SIGTERM')
  expect(await dev.exited).toBe(0)
  await expect(fetch(`${second.replace('listening on ', '')}/health`)).rejects.toThrow()
})
