import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureCoder } from '../../src/core/agents/default-agent.ts'
import { applyAgent, saveVersion, type VersionFiles } from '../../src/core/agents/versions.ts'
import { findAgent, saveAgent } from '../../src/db/agents.ts'
import { listDeployments } from '../../src/db/deployments.ts'
import { ensureTeam } from '../../src/db/teams.ts'
import { readConfig } from '../../src/start/config.ts'
import { createModelGateway } from '../../src/start/gateway.ts'
import { cleanUpAfterEach, openTemporary } from '../runs/support.ts'

cleanUpAfterEach()

test('a key at start is enough for a default model', async () => {
  const { models } = await readConfig([], {})
  const gateway = createModelGateway(openTemporary(), models, { OPENAI_API_KEY: 'sk-of-openai' }, () => {})
  expect(gateway.defaultModel).toBe('openai/gpt-5.2')
  expect(createModelGateway(openTemporary(), models, {}, () => {}).defaultModel).toBeUndefined()
})

const short: [string, string[], Record<string, string>][] = [
  ['of a known provider', [], { ANTHROPIC_API_KEY: 'sk-1234' }],
  ['of a model by its URL', ['--model', 'lab/m', '--model-url', 'http://127.0.0.1:9/v1', '--model-key', 'x'], {}],
]
test.each(short)('a key %s of fewer than eight characters is refused, and not repeated', async (_, flags, keys) => {
  const { models } = await readConfig(flags, {})
  const open = () => createModelGateway(openTemporary(), models, keys, () => {})
  expect(open).toThrow(/^the key of (anthropic|lab) has fewer than 8 characters: give the whole key/)
  expect(open).not.toThrow(/sk-1234|\bx\b/)
})

test('flags name a local model, its window and its budgets', async () => {
  const flags = ['--model', 'ollama/qwen3:8b', '--model-url=http://127.0.0.1:9/v1', '--model-window', '40000']
  const { models } = await readConfig([...flags, '--day-budget-usd', '2.5'], { THREADBOX_MODEL_KEY: 'a-secret' })
  expect(models).toMatchObject({ modelKey: 'a-secret', budgets: { dayUsd: 2.5, threadUsd: 0 } })
  const gateway = createModelGateway(openTemporary(), models, {}, () => {})
  const budgets = {}
  const inside = { environmentId: 'e', via: 'relay' as const }
  const run = { teamId: 't', agentSlug: 'a', sandboxId: 's', threadId: 't', runId: 'r', budgets, inside }
  const { access } = gateway.open(run)
  expect(access).toMatchObject({
    provider: 'ollama',
    wire: 'openai-chat',
    id: 'qwen3:8b',
    contextTokens: 40_000,
    insideBaseUrl: 'http://127.0.0.1:3128/gateway/ollama/v1',
  })
  expect(JSON.stringify(access)).not.toContain('secret')
})

test('a configuration file has providers and prices as JSON', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'threadbox-'))
  const file = join(directory, 'config.json')
  const lab = { wire: 'openai-chat', baseUrl: 'http://lab/v1', keyEnv: 'LAB_KEY' }
  const settings = { model: 'lab/m', providers: { lab }, prices: { 'lab/m': { input: 1, output: 2 } } }
  writeFileSync(file, JSON.stringify(settings))
  const { models } = await readConfig(['--config', file], {})
  rmSync(directory, { recursive: true })
  expect(models).toMatchObject(settings)
  expect(createModelGateway(openTemporary(), models, {}, () => {}).providers.get('lab')?.baseUrl).toBe('http://lab/v1')
})

test('what is wrong with the models is told at start', async () => {
  const wrong = [
    '--model',
    'gpt',
    '--prices',
    '{"m":1}',
    '--providers',
    'x',
    '--day-budget-usd',
    '-1',
    '--model-url',
    'x',
  ]
  await expect(readConfig(wrong, {})).rejects.toThrow(
    /--model: must be provider\/model\n--prices: m: must have.*\n--providers: .*\n--day-budget-usd: must be.*\n--model-url: must be/,
  )
  await expect(readConfig(['--model-url', 'http://localhost:1'], {})).rejects.toThrow('--model-url: wants --model')
  const { models } = await readConfig(['--model', 'openai/gpt-5.2'], {})
  expect(() => createModelGateway(openTemporary(), models, {}, () => {})).toThrow('set OPENAI_API_KEY')
})

test('coder stands ready with the model of the day, until somebody makes it their own', () => {
  const db = openTemporary()
  const teamId = ensureTeam(db, 'team').id
  const model = () => findAgent(db, teamId, 'coder')?.model
  ensureCoder(db, teamId, undefined, false)
  expect(model()).toBeUndefined()
  ensureCoder(db, teamId, 'anthropic/a', false)
  expect(model()).toBe('anthropic/a')
  ensureCoder(db, teamId, 'openai/b', false)
  expect(model()).toBe('openai/b')
  const { id: _, teamId: __, createdAt: ___, updatedAt: ____, ...coder } = findAgent(db, teamId, 'coder')!
  saveAgent(db, teamId, { ...coder, model: 'openai/mine', systemPrompt: 'Be brief.' })
  ensureCoder(db, teamId, 'openai/b', false)
  expect(model()).toBe('openai/mine')
  ensureCoder(db, teamId, 'openai/c', true)
  expect(findAgent(db, teamId, 'coder')).toMatchObject({ model: 'openai/c', systemPrompt: 'Be brief.' })
  applyAgent(db, teamId, { ...coder, systemPrompt: 'By a file.' })
  const files: VersionFiles = { madeBy: 'edit', tools: [] }
  saveVersion(db, teamId, { ...coder, model: 'openai/edited', systemPrompt: 'Edited.' }, files)
  ensureCoder(db, teamId, 'openai/e', false)
  expect(model()).toBe('openai/edited')
  ensureCoder(db, teamId, 'openai/e', true)
  const { id, deploymentId } = findAgent(db, teamId, 'coder')!
  expect(findAgent(db, teamId, 'coder')).toMatchObject({ model: 'openai/e', systemPrompt: 'Edited.' })
  const [newest, ...others] = listDeployments(db, id)
  expect([newest?.id, newest?.madeBy, others.map(each => each.madeBy)]).toEqual([
    deploymentId!,
    'apply',
    ['edit', 'apply'],
  ])
  saveAgent(db, teamId, { ...coder, engine: 'echo', model: 'x' })
  ensureCoder(db, teamId, 'openai/d', true)
  expect(model()).toBe('x')
})
