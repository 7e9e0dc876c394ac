import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeAgent, saveAgent } from '../../src/db/agents.ts'
import { findDeployment, insertDeployment, listBundles, listDeployments } from '../../src/db/deployments.ts'
import { insertSandbox } from '../../src/db/sandboxes.ts'
import { ensureTeam } from '../../src/db/teams.ts'
import type { AgentDefinition } from '../../src/model/agent.ts'
import { addSandbox, cleanUpAfterEach, openTemporary, temporaryPath } from '../runs/support.ts'

cleanUpAfterEach()

const definition: AgentDefinition = {
  ...{ name: 'S', engine: 'echo', options: {} },
  sandbox: { files: {}, envs: {}, setup: [], limits: {} },
}

test('versions are numbered from 1 for each agent, the newest hundred are kept, and go with it', () => {
  const db = openTemporary()
  const { id: teamId } = ensureTeam(db, 'team')
  const [one, two] = ['one', 'two'].map(slug => saveAgent(db, teamId, { slug, ...definition }).id)
  const insert = (agentId = '', bundle = 'b') =>
    insertDeployment(db, { agentId, madeBy: 'deploy', definition, tools: [], bundle })
  const first = insert(one, 'b1')
  expect(first).toMatchObject({ version: 1, bundle: 'b1' })
  expect(findDeployment(db, first.id)).toEqual(first)
  for (let version = 2; version <= 101; version++) expect(insert(one).version).toBe(version)
  expect(insert(two, 'b2').version).toBe(1)
  const versions = listDeployments(db, one!).map(({ version }) => version)
  expect([versions.length, versions[0], versions.at(-1)]).toEqual([100, 101, 2])
  removeAgent(db, teamId, 'one')
  expect(listDeployments(db, one!)).toEqual([])
  expect(listBundles(db)).toEqual(['b2'])
  const { createdAt: _, updatedAt: __, lastUsedAt: ___, ...sandbox } = addSandbox(db)
  insertSandbox(db, { ...sandbox, id: 'sbx_2', environmentId: 'env_2', bundle: 'b3' })
  expect(listBundles(db).sort()).toEqual(['b2', 'b3'])
})

test('versions of a database of schema 14 are there after its migration, as deploys', () => {
  const path = temporaryPath()
  const old = new Database(path)
  const directory = join(import.meta.dir, '../../src/db/migrations')
  const released = readdirSync(directory).sort().slice(0, 14)
  for (const name of released) old.run(readFileSync(join(directory, name), 'utf8'))
  const at = '2026-01-01T00:00:00.000Z'
  old.run(`insert into teams values ('team_1', 'team', '${at}')`)
  old.run(
    `insert into agents (id, team_id, slug, name, engine, sandbox, options, deployment_id, created_at, updated_at)
     values ('agt_1', 'team_1', 's', 'S', 'echo', '${JSON.stringify(definition.sandbox)}', '{}', 'dep_1', '${at}', '${at}')`,
  )
  old.run(
    `insert into deployments values ('dep_1', 'agt_1', 1, '${JSON.stringify(definition)}', 'm', '[]', 'b1', 't1', '${at}')`,
  )
  old.run('pragma user_version = 14')
  old.close()
  const db = openTemporary(path)
  const kept = { id: 'dep_1', agentId: 'agt_1', version: 1, model: 'm', bundle: 'b1', template: 't1', createdAt: at }
  expect(findDeployment(db, 'dep_1')).toEqual({ ...kept, madeBy: 'deploy', tools: [], definition })
  expect(insertDeployment(db, { agentId: 'agt_1', madeBy: 'edit', definition, tools: [] }).version).toBe(2)
  expect(listBundles(db)).toEqual(['b1', 't1'])
  removeAgent(db, 'team_1', 's')
  expect(db.query('select * from deployments').all()).toEqual([])
})
