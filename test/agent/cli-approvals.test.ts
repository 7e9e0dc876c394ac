import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { bash, useAgentServer } from '../support/agent-server.ts'
import { command, temporaryDirectory } from '../support/server.ts'
import { openTerminal } from './terminal.ts'

const { server, model, modelKey } = useAgentServer()
const home = temporaryDirectory()
afterAll(() => rmSync(home, { recursive: true }))
const file = join(home, 'careful.json')

beforeAll(async () => {
  const options = { approvals: 'on', permissionMode: 'default' }
  const agent = { slug: 'careful', name: 'Careful', engine: 'ai-sdk', model: 'anthropic/claude-sonnet-4-6', options }
  await Bun.write(file, JSON.stringify(agent))
  expect((await command(['agents', 'apply', file, '--data-dir', server.dataDirectory])).code).toBe(0)
})

const environment = () => ({
  THREADBOX_API_KEY: server.key,
  THREADBOX_URL: server.url,
  ANTHROPIC_API_KEY: modelKey,
  ANTHROPIC_BASE_URL: model.access('anthropic').baseUrl,
  HOME: home,
  XDG_STATE_HOME: join(home, crypto.randomUUID()),
})

const playTwice = () =>
  model.play({ text: 'I count. ', calls: [bash('echo one'), bash('echo two')] }, ({ results }) => ({
    text: `It gave: ${results.map(result => result.trim()).join(', ')}.`,
  }))

describe('threadbox chat', () => {
  test('asks at the terminal about each call, and goes on with the answers', async () => {
    playTwice()
    await using terminal = openTerminal(['chat', 'careful'], environment())
    await terminal.shows('careful ›')
    terminal.type('Count.\r')
    await terminal.shows('Bash echo one')
    await terminal.shows('Allow it? y, n, or always ›')
    terminal.type('perhaps\r')
    await terminal.shows('Allow it? y, n, or always ›')
    terminal.type('y\r')
    await terminal.shows('Bash echo two')
    await terminal.shows('Allow it? y, n, or always ›')
    terminal.type('no\r')
    await terminal.shows('It gave: one, The user denied this call.')
    expect(terminal.shown.split('I count.').length).toBe(2)
    await terminal.shows('careful ›')

    model.play(
      { calls: [bash('echo again')] },
      { text: 'First.' },
      { calls: [bash('echo again')] },
      { text: 'Second.' },
    )
    terminal.type('Again.\r')
    await terminal.shows('always ›')
    terminal.type('a\r')
    await terminal.shows('First.')
    await terminal.shows('careful ›')
    terminal.type('Once more.\r')
    await terminal.shows('Second.')
    expect(terminal.shown.split('always ›').length - 1).toBe(4)
  }, 60_000)

  test('says what waits where nobody can be asked', async () => {
    playTwice()
    const { code, stdout, stderr } = await command(['chat', 'careful', 'Count.'], { env: environment() })
    expect([code, stdout]).toEqual([1, 'I count. \n'])
    expect(stderr).toMatch(/Bash echo one\n(.*\n)*This waits for an approval: POST \/v1\/approvals\/apr_/)
  })
})

describe('threadbox run', () => {
  const run = (...flags: string[]) =>
    command(['run', '--agent', file, '--quiet', ...flags, 'Count.'], { env: environment() })

  test.each([
    [['--approve', 'all'], 'It gave: one, two.'],
    [['--approve', 'none'], 'It gave: The user denied this call., The user denied this call..'],
    [[], 'It gave: The user denied this call., The user denied this call..'],
  ] as const)('%p decides without a person', async (flags, text) => {
    playTwice()
    const { code, stdout, stderr } = await run(...flags)
    expect([code, stdout], stderr).toEqual([0, `I count. \n${text}\n`])
  })

  test('--approve ask asks at the terminal', async () => {
    playTwice()
    const args = ['run', '--agent', file, '--approve', 'ask', 'Count.']
    await using terminal = openTerminal(args, environment())
    await terminal.shows('always ›')
    terminal.type('y\r')
    await terminal.shows('always ›')
    terminal.type('n\r')
    await terminal.shows('It gave: one, The user denied this call.')
    expect(await terminal.exited).toBe(0)
  }, 60_000)

  test('--approve ask without a terminal, and other words, are refused', async () => {
    expect(await run('--approve', 'ask')).toMatchObject({ code: 2, stderr: expect.stringContaining('all or none') })
    expect(await run('--approve', 'maybe')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('all, none or ask'),
    })
  })
})
