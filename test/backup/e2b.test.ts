import { afterAll, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { command, patiently, startServer, temporaryDirectory } from '../support/server.ts'
import { openThreadboxAsE2b } from '../support/threadbox-as-e2b.ts'

patiently()
const scratch = temporaryDirectory()
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

test('a backup says in which sandboxes of E2B the files stay', async () => {
  const e2b = await openThreadboxAsE2b()
  const env = e2b.variables
  const server = await startServer({ flags: ['--backend', 'e2b'], env })
  const id = await server.sandbox()
  const [box = ''] = e2b.sandboxes().values()
  const words = ['backup', 'create', join(scratch, 'one.tar.zst'), '--data-dir', server.dataDirectory]
  expect(await command(words, { env })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`${id}\tits files stay with E2B, in the sandbox ${box}`),
  })
  const verified = await command(['backup', 'verify', join(scratch, 'one.tar.zst'), '--temporary', scratch])
  expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining(`in the sandbox ${box}`) })
  const other = ['backup', 'create', join(scratch, 'two.tar.zst'), '--data-dir', server.dataDirectory]
  expect(await command(other)).toMatchObject({ code: 0, stdout: expect.stringContaining('without E2B_API_KEY') })
  await server.close()
  await e2b.close()
})
