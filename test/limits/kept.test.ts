import { beforeEach, expect, test } from 'bun:test'
import { saveDiskBytes } from '../../src/db/team-counts.ts'
import { findTeam, saveTeamLimits } from '../../src/db/teams.ts'
import { useApp } from '../support/app.ts'
import { bundleOf, deployEvents, deployForm, noTools } from '../support/bundle.ts'
import type { Answer } from '../support/client.ts'

const app = useApp(['--spares', '0'])
beforeEach(() => limit({}))

/** Changed beside the server, as `threadbox teams limit` does. */
const limit = (limits: Record<string, string>) =>
  app.beside(db => saveTeamLimits(db, findTeam(db, 'default')!.id, limits))
const refusal = ({ status, headers, body }: Answer) => [status, headers.get('retry-after'), body.error?.limit]
const deploy = async (slug: string, bundle = noTools) => {
  const response = await app.request('POST', '/v1/agents/deploy', { body: deployForm({ slug, bundle }) })
  return (await deployEvents(response)).at(-1)
}

test('at the limit of its disk a team makes no sandbox, uploads nothing and clones nothing; commands go on', async () => {
  const id = await app.sandbox()
  app.beside(db => saveDiskBytes(db, app.environmentIds.at(-1) ?? '', 3 * 1024 * 1024))
  limit({ 'team.disk': '3' })
  const files = `/v1/sandboxes/${id}/files`
  const refused = [429, '60', 'team.disk']
  expect(refusal(await app.ask('POST', '/v1/sandboxes', { agent: 'echo' }))).toEqual(refused)
  expect(refusal(await app.ask('POST', files, { files: { '/a': 'a' } }))).toEqual(refused)
  expect(refusal(await app.ask('POST', `/v1/sandboxes/${id}/git/clone`, { url: 'https://127.0.0.1/x' }))).toEqual(
    refused,
  )
  expect(await app.shell(id, 'ls /a 2>&1 || echo none')).toContain('none')
  limit({ 'team.disk': '4' })
  expect((await app.ask('POST', files, { files: { '/a': 'a' } })).status).toBeLessThan(300)
})

test('at the limits of agents, bundles and versions nothing is deployed', async () => {
  expect((await deploy('one')).type).toBe('result')
  const refused = (words: string) => ({
    type: 'error',
    code: 'rate_limit_exceeded',
    message: `This team has ${words}, and can have no more: remove some.`,
  })
  // Every team has the agent echo.
  limit({ 'team.agents': '2' })
  expect(await deploy('two', bundleOf('export default 2'))).toEqual(refused('2 agents'))
  expect((await app.ask('GET', '/v1/agents/two')).status).toBe(404)
  limit({ 'team.bundles': '1' })
  expect(await deploy('one', bundleOf('export default 3'))).toEqual(refused('1 bundles'))
  limit({ 'team.versions': '1' })
  expect(await deploy('one', bundleOf('export default 4'))).toEqual(refused('1 versions of agents'))
  limit({})
  expect((await deploy('one')).result.version).toBe(2)
})
