import { afterAll } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createNsjailBackend } from 'nsjail-wrapper'
import type { PluginContext } from '../../src/plugin-api/index.ts'
import { describeBackend } from './contract.ts'

const root = join(import.meta.dir, '../..')
const dataDirectory = mkdtempSync(join(tmpdir(), 'threadbox-contract-'))
afterAll(() => rmSync(dataDirectory, { recursive: true, force: true }))

const name = process.getuid?.() === 0 ? 'nsjail as root' : 'nsjail as an ordinary user'
const open = async (serveProxy: PluginContext['serveProxy']) =>
  createNsjailBackend({
    dataDirectory,
    executable: join(root, 'dist/threadbox'),
    nsjailPath: join(root, '.cache/nsjail/bin/nsjail'),
    serveProxy,
    log: line => console.error(line),
  })

describeBackend(name, open)
