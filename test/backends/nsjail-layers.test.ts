import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createNsjailBackend } from '../../plugins/nsjail/index.ts'
import { newId } from '../../src/db/id.ts'
import { runCommand } from '../../src/environment/run-command.ts'
import type { Environment } from '../../src/plugin-api/index.ts'
import { guestExecutable } from '../../src/start/executable.ts'

setDefaultTimeout(60_000)
const dataDirectory = mkdtempSync(join(tmpdir(), 'threadbox-layers-'))
// Sandboxes' own users pass through.
chmodSync(dataDirectory, 0o711)
const backend = createNsjailBackend({
  dataDirectory,
  maxLayers: 2,
  executable: guestExecutable,
  nsjailPath: join(import.meta.dir, '../../.cache/nsjail/bin/nsjail'),
  log: line => console.error(line),
})
afterAll(async () => {
  for (const id of await backend.list()) await (await backend.open(id))?.destroy()
  await backend.close()
  rmSync(dataDirectory, { recursive: true, force: true })
})

const limits = { diskMb: 256 }
const { snapshots } = backend
const shell = async (environment: Environment, command: string) =>
  (await runCommand(environment, { command, timeoutMs: 20_000 })).stdout

test('a fork of a fork goes on where sharing ends, with all that each of them has written and removed', async () => {
  if (!snapshots) throw new Error('nsjail takes snapshots')
  const taken: string[] = []
  const methods: string[] = []
  let environment = await backend.create({ id: newId('env'), limits })
  await shell(environment, 'mkdir hidden; echo old > hidden/old; touch gone; rm -r /var/mail')
  for (let depth = 1; depth <= 4; depth++) {
    if (depth === 3) await shell(environment, 'rm -r gone hidden; mkdir hidden; echo new > hidden/new')
    await shell(environment, `echo ${depth} >> file; chmod 640 file`)
    const snapshot = newId('snap')
    methods.push((await snapshots.take(environment.id, snapshot)).forkMethod)
    taken.push(snapshot)
    await environment.destroy()
    environment = await backend.create({ id: newId('env'), limits, snapshot })
  }
  expect(methods).toEqual(['layers', 'layers', 'copy', 'copy'])
  const look = 'cat file; stat -c "%a %U" file; ls . hidden; ls -d /var/mail gone 2>/dev/null'
  const seen = '1\n2\n3\n4\n640 root\n.:\nfile\nhidden\n\nhidden:\nnew\n'
  expect(await shell(environment, look)).toBe(seen)
  await environment.pause?.()
  // What was copied is shared by nobody, and what lies below it stays.
  const removed: boolean[] = []
  for (const each of taken.toReversed()) removed.push(await snapshots.remove(each))
  expect(removed).toEqual([true, true, false, false])
  expect(await shell(environment, look)).toBe(seen)
  await environment.destroy()
  for (const each of taken.toReversed()) expect(await snapshots.remove(each)).toBe(true)
  expect(readdirSync(join(dataDirectory, 'snapshots'))).toEqual([])
})
