import { expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openTerminal } from '../agent/terminal.ts'
import { executable, patiently, plainEnvironment, temporaryDirectory } from '../support/server.ts'
import { until } from '../support/until.ts'

patiently()

test('in a terminal, what takes long shows how far it is, and leaves nothing on the line', async () => {
  const directory = temporaryDirectory()
  writeFileSync(join(directory, 'slow.json'), JSON.stringify({ slug: 'slow', sandbox: { setup: ['true', 'sleep 2'] } }))
  {
    const args = ['exec', '--data-dir', directory, '--agent', join(directory, 'slow.json'), '--', 'echo done']
    await using screen = openTerminal(args, {})
    await screen.shows('running set-up command 2 of 2, ')
    await screen.shows('done')
    expect(await screen.exited).toBe(0)
    expect(screen.raw).toContain('\r\x1b[2Kdone')
  }
  rmSync(directory, { recursive: true })
})

test('in a log it is a line now and then, with what has been read', async () => {
  const directory = temporaryDirectory()
  const child = Bun.spawn([executable, 'base', 'add', 'slow', '-', '--data-dir', directory], {
    env: plainEnvironment,
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  let said = ''
  const reading = (async () => {
    for await (const bytes of child.stderr) said += Buffer.from(bytes).toString()
  })()
  child.stdin.write(new Uint8Array(2_000_000))
  await child.stdin.flush()
  await until(() => /^threadbox: adding slow, [\d.]+ MB, 1\d s$/m.test(said))
  await child.stdin.end()
  await child.exited
  await reading
  expect(said).not.toContain('\x1b')
  rmSync(directory, { recursive: true })
})
