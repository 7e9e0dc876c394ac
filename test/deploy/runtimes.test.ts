import { describe, expect, test } from 'bun:test'
import { claudeCode } from '../../plugins/agent-programs/index.ts'
import { useApp } from '../support/app.ts'
import { deployEvents, deployForm, noTools } from '../support/bundle.ts'
import { command } from '../support/server.ts'

const bundle = noTools
const words = (events: any[]) => events.map(({ message }) => message).join('\n')

async function deploy(app: ReturnType<typeof useApp>, slug: string, runtime: string) {
  const body = deployForm({ slug, bundle, metadata: { runtime, model: 'm', tools: [], hooks: [] } })
  return await deployEvents(await app.request('POST', '/v1/agents/deploy', { body }))
}

describe('a deploy whose runtime needs a program', () => {
  const app = useApp([], {}, () => [claudeCode])

  test('says at once that the sandbox lacks it, and what brings it', async () => {
    const events = await deploy(app, 'claude', 'claude-code')
    expect(words(events)).toContain('claude cannot answer yet: There is no claude in this sandbox.')
    expect(words(events)).toContain('npm install -g')
    expect(events.at(-1).type).toBe('result')
    const { logs } = (await app.ask('GET', '/v1/agents/claude/logs')).body
    expect(JSON.stringify(logs)).toContain('There is no claude in this sandbox.')
    expect((await app.ask('GET', '/v1/agents/claude')).body.runtime).toBe('claude-code')
  })

  test('says nothing of it for a runtime that needs none', async () => {
    const events = await deploy(app, 'plain', 'ai-sdk')
    expect(words(events)).not.toContain('cannot answer')
  })
})

describe('a runtime that the operator has mapped', () => {
  const app = useApp(['--runtime', 'claude-code=ai-sdk', '--runtime', 'codex=echo'], {}, () => [claudeCode])

  test.each([
    ['claude-code', 'ai-sdk'],
    ['codex', 'echo'],
  ])('%s is answered by %s', async (runtime, engine) => {
    expect(words(await deploy(app, runtime, runtime))).not.toContain('cannot answer')
    expect((await app.ask('GET', `/v1/agents/${runtime}`)).body.runtime).toBe(engine)
  })
})

test('a mapping to an engine that is not here is refused at start', async () => {
  const { code, stderr } = await command(['serve', '--port', '0', '--runtime', 'claude-code=none'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('--runtime: there is no engine none')])
})
