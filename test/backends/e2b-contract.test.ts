import { afterAll } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createE2bBackend } from '../../plugins/e2b/index.ts'
import { openThreadboxAsE2b, type ThreadboxAsE2b } from '../support/threadbox-as-e2b.ts'
import { describeBackend } from './contract.ts'

const dataDirectory = mkdtempSync(join(tmpdir(), 'threadbox-contract-'))
let e2b: ThreadboxAsE2b | undefined
afterAll(async () => {
  await e2b?.close()
  rmSync(dataDirectory, { recursive: true, force: true })
})

const openBackend = async () => {
  e2b ??= await openThreadboxAsE2b()
  return createE2bBackend({
    dataDirectory,
    connection: e2b.variables,
    template: 'base',
    idleMs: 3_600_000,
    log: line => console.error(line),
  })
}

describeBackend('e2b', openBackend, 'own')
