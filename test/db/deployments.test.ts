import { expect, test } from 'bun:test'
import { removeAgent, saveAgent } from '../../src/db/agents.ts'
import { findDeployment, insertDeployment, listBundles, listDeployments } from '../../src/db/deployments.ts'
import { insertSandbox } from '../../src/db/sandboxes.ts'
import { ensureTeam } from '../../src/db/teams.ts'
import type { AgentDefinition } from '../../src/model/agent.ts'
import { addSandbox, cleanUpAfterEach, openTemporary } from '../runs/support.ts'

cleanUpAfterEach()

const definition: AgentDefinition = {
  ...{ name: 'S', engine: 'echo', options: {} },
  sandbox: { files: {}, envs: {}, setup: [], limits: {} },
}

test('versions are numbered from 1 for each agent, the newest hundred are kept, and go with it', () => {
  const db = openTemporary()
  const { id: teamId } = ensureTeam(db, 'team')
  const [one, two] = ['one', 'two'].map(slug => saveAgent(db, teamId, { slug, ...definition }).id)
  const insert = (agentId = '', bundle = 'b') => insertDeployment(db, { agentId, definition, tools: [], bundle })
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
