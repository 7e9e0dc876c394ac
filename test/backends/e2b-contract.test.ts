import { afterAll } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createE2bBackend } from '../../plugins/e2b/index.ts'
import { type FakeE2b, openFakeE2b } from '../support/e2b/server.ts'
import { describeBackend } from './contract.ts'

const dataDirectory = mkdtempSync(join(tmpdir(), 'threadbox-contract-'))
let fake: FakeE2b | undefined
afterAll(async () => {
  await fake?.close()
  rmSync(dataDirectory, { recursive: true, force: true })
})

const openBackend = async () => {
  fake ??= await openFakeE2b()
  const { environment: connection } = fake
  return createE2bBackend({
    dataDirectory,
    connection,
    template: 'base',
    idleMs: 3_600_000,
    log: line => console.error(line),
  })
}

describeBackend('e2b', openBackend, 'own')
