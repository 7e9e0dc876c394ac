import { beforeAll, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { bash, useAgentServer } from '../support/agent-server.ts'
import { command, temporaryDirectory } from '../support/server.ts'
import { textIn } from '../support/sse.ts'
import { until } from '../support/until.ts'

const { server, model, said, threadOf } = useAgentServer()

beforeAll(async () => {
  const directory = temporaryDirectory()
  const options = { approvals: 'on' }
  const agent = { slug: 'careful', name: 'Careful', engine: 'ai-sdk', model: 'anthropic/claude-sonnet-4-6', options }
  await Bun.write(join(directory, 'careful.json'), JSON.stringify(agent))
  expect((await command(['agents', 'apply', directory, '--data-dir', server.dataDirectory])).code).toBe(0)
  rmSync(directory, { recursive: true })
})

test('a command that was approved for good asks no more, in any thread of the agent, and another does', async () => {
  model.play({ calls: [bash('echo one > note')] }, { text: 'Made.' })
  const { chunks: _, ...place } = await said('Make it.', { stream: 'full' }, 'careful')
  expect((await threadOf(place)).status).toBe('waiting')
  const pending = async () => (await server.ask('GET', '/v1/approvals?status=pending')).body.approvals
  const [approval] = await pending()
  await server.ask('POST', `/v1/approvals/${approval.id}`, { approved: true, remember: 'agent' })
  await until(async () => (await threadOf(place)).status === 'completed')
  const { rules } = (await server.ask('GET', '/v1/agents/careful/rules')).body
  expect(rules).toMatchObject([{ rule: 'Bash(echo one > note)', threadId: null }])

  model.play({ calls: [bash('echo one > note')] }, { text: 'Again.' })
  expect(textIn((await said('Again.', {}, 'careful')).chunks)).toBe('Again.')
  model.play({ calls: [bash('echo one > other')] })
  await said('Another.', {}, 'careful')
  expect((await pending()).map(({ input }: any) => input.command)).toEqual(['echo one > other'])
})
