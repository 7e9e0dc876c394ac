import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { agentEnv, findAgent, saveAgent, setAgentVariable } from '../../src/db/agents.ts'
import initial from '../../src/db/migrations/0001_initial.sql' with { type: 'text' }
import models from '../../src/db/migrations/0002_models.sql' with { type: 'text' }
import { openDatabase } from '../../src/db/open.ts'
import { findSandbox } from '../../src/db/sandboxes.ts'
import { seal, unseal } from '../../src/db/seal.ts'
import { ensureTeam } from '../../src/db/teams.ts'
import { cleanUpAfterEach, openTemporary, temporaryPath } from '../runs/support.ts'

cleanUpAfterEach()

const keyOf = (path: string) => join(dirname(path), 'threadbox.key')
const stored = (path: string) =>
  readdirSync(dirname(path))
    .filter(name => name.startsWith('threadbox.db'))
    .map(name => readFileSync(join(dirname(path), name), 'latin1'))
    .join('')

test('a text opens as the column and row that it was sealed as, and as no other', () => {
  const db = openTemporary()
  const sealed = seal(db, 'secret', 'agents.env', 'agt_1')
  expect(unseal(db, sealed, 'agents.env', 'agt_1')).toBe('secret')
  expect(seal(db, 'secret', 'agents.env', 'agt_1')).not.toBe(sealed)
  expect(() => unseal(db, sealed, 'agents.env', 'agt_2')).toThrow()
  expect(() => unseal(db, sealed, 'sandboxes.envs', 'agt_1')).toThrow()
})

test('the key is made at the first secret, for its owner alone', () => {
  const path = temporaryPath()
  const db = openTemporary(path)
  expect(existsSync(keyOf(path))).toBe(false)
  seal(db, 'secret', 'c', 'i')
  expect(statSync(keyOf(path)).mode & 0o777).toBe(0o600)
  const other = openTemporary(path)
  expect(unseal(other, seal(db, 'again', 'c', 'i'), 'c', 'i')).toBe('again')
  expect(readdirSync(dirname(path)).filter(name => name.includes('key'))).toEqual(['threadbox.key'])
})

const broken: [string, (path: string) => void, RegExp][] = [
  ['missing', path => rmSync(keyOf(path)), /threadbox\.key is missing/],
  ['another', path => writeFileSync(keyOf(path), Buffer.alloc(32, 7).toString('base64')), /is key \w{8}, this was/],
  ['no key', path => writeFileSync(keyOf(path), 'hello'), /threadbox\.key is no key/],
]
test.each(broken)('with a key that is %s the secret is told to be out of reach', (_, breakIt, message) => {
  const path = temporaryPath()
  const sealed = seal(openTemporary(path), 'secret', 'c', 'i')
  breakIt(path)
  expect(() => unseal(openTemporary(path), sealed, 'c', 'i')).toThrow(message)
})

test('what agents hold of secrets is not in the file', () => {
  const path = temporaryPath()
  const db = openTemporary(path)
  const { id: teamId } = ensureTeam(db, 'team')
  const sandbox = { files: {}, envs: { A: 'secret-one' }, setup: [], limits: {} }
  const headers = { authorization: 'secret-two' }
  const options = { mcpServers: { m: { type: 'http' as const, url: 'http://m', headers } } }
  const { id } = saveAgent(db, teamId, { slug: 's', name: 'S', engine: 'echo', sandbox, options })
  expect(setAgentVariable(db, id, 'B', 'secret-three')).toEqual({ B: 'secret-three' })
  expect(findAgent(db, teamId, 's')).toMatchObject({ sandbox, options })
  expect(agentEnv(db, id)).toEqual({ B: 'secret-three' })
  expect(stored(path)).not.toContain('secret-')
  // Applied again it keeps its variables.
  saveAgent(db, teamId, { slug: 's', name: 'New', engine: 'echo', sandbox, options: {} })
  expect(setAgentVariable(db, id, 'C', 'x')).toEqual({ B: 'secret-three', C: 'x' })
  expect(setAgentVariable(db, id, 'B', undefined)).toEqual({ C: 'x' })
})

test('a database of schema 2 is encrypted when it is opened, with nothing left of what was readable', () => {
  const path = temporaryPath()
  const old = new Database(path)
  old.run('pragma journal_mode = wal')
  old.run(initial)
  old.run(models)
  const at = '2026-01-01T00:00:00.000Z'
  const envs = JSON.stringify({ TOKEN: 'secret-old', BIG: 'secret-big '.repeat(2000) })
  old.run(`insert into teams values ('team_1', 'team', '${at}')`)
  old.run(
    `insert into agents values ('agt_1', 'team_1', 's', 'S', 'echo', null, null,
     '{"files":{},"envs":${envs},"setup":[],"limits":{}}', '${at}', '${at}', '{"mcpServers":{"m":{"type":"http","url":"http://secret-url"}}}')`,
  )
  old.run(
    `insert into sandboxes values ('sbx_1', 'team_1', 's', 'S', 'env_1', 'nsjail', 'active', null, '${envs}', '/', null, null,
     '${at}', '${at}', '${at}', '{}')`,
  )
  old.run('pragma user_version = 2')
  old.close()
  const db = openTemporary(path)
  expect(findAgent(db, 'team_1', 's')?.sandbox.envs.TOKEN).toBe('secret-old')
  expect(findAgent(db, 'team_1', 's')?.options.mcpServers).toEqual({ m: { type: 'http', url: 'http://secret-url' } })
  expect(findSandbox(db, 'team_1', 'sbx_1')?.envs).toEqual(JSON.parse(envs))
  expect(stored(path)).not.toContain('secret-')
  expect(openDatabase(path).close()).toBeUndefined()
})
