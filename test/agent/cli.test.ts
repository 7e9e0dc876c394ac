import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { bash, useAgentServer } from '../support/agent-server.ts'
import { processesNamed } from '../support/leftovers.ts'
import { command, executable, plainEnvironment, temporaryDirectory } from '../support/server.ts'
import { until } from '../support/until.ts'
import { ctrlC, ctrlD, openTerminal } from './terminal.ts'

const { server, model, threadOf } = useAgentServer()
const home = temporaryDirectory()
afterAll(() => rmSync(home, { recursive: true }))
/** Each test remembers no thread of another. */
let state = 0
beforeEach(() => {
  state += 1
})

const environment = () => ({
  THREADBOX_API_KEY: server.key,
  THREADBOX_URL: server.url,
  HOME: home,
  XDG_STATE_HOME: join(home, `${state}`),
})
const chat = (...args: string[]) => command(['chat', ...args], { env: environment() })
const terminal = (...args: string[]) => openTerminal(['chat', ...args], environment())
/** Where the newest conversation is. */
async function newest() {
  const { sandboxId, id } = (await server.ask('GET', '/v1/sandboxes')).body.sandboxes[0]
  const { threads } = (await server.ask('GET', `/v1/sandboxes/${id}`)).body
  return { sandboxId: sandboxId ?? id, threadId: threads[0].id as string }
}

describe('threadbox chat, piped', () => {
  test('prints the reply’s text, and what tools gave', async () => {
    model.play({ text: 'I look. ', calls: [bash('echo seen')] }, ({ results }) => ({ text: `It says ${results[0]}` }))
    const { code, stdout, stderr } = await chat('coder', 'Look', 'around.')
    expect([code, stdout, stderr]).toEqual([0, 'I look. \n● Bash echo seen\nseen\nIt says seen\n', ''])
    expect(model.requests.at(-1)?.lastText).toContain('Look around.')
  })

  test('prints what a command of echo gave, its first lines when there are many', async () => {
    expect(await chat('echo', '$ seq 2')).toEqual({ code: 0, stdout: '● Bash seq 2\n1\n2\n', stderr: '' })
    const { stdout } = await chat('echo', '$ seq 100')
    expect(stdout).toMatch(/^● Bash seq 100\n1\n(\d+\n){38}40\n… 60 more lines\n$/)
  })

  test('--quiet prints the reply’s text and nothing else', async () => {
    model.play({ text: 'I look. ', calls: [bash('echo seen')] }, ({ results }) => ({ text: `It says ${results[0]}` }))
    const { code, stdout, stderr } = await chat('coder', '--quiet', 'Look', 'around.')
    expect([code, stdout, stderr]).toEqual([0, 'I look. \nIt says seen\n', ''])
  })

  test('takes the message from its input', async () => {
    model.play(({ lastText }) => ({ text: `You said: ${lastText}` }))
    const child = Bun.spawn([executable, 'chat', 'coder'], {
      env: { ...plainEnvironment, ...environment() },
      stdio: [Buffer.from('from a pipe'), 'pipe', 'pipe'],
    })
    expect([await child.stdout.text(), await child.exited]).toEqual(['You said: from a pipe\n', 0])
  })

  test('fails with the words of a failure on stderr', async () => {
    model.play({ text: 'So far', ending: 'error' })
    const { code, stdout, stderr } = await chat('coder', 'Go.')
    expect([code, stdout]).toEqual([1, 'So far\n'])
    expect(stderr).toContain('overloaded')
  })

  const mistakes = [
    {
      name: 'without a key',
      env: { THREADBOX_API_KEY: '' },
      args: ['coder', 'Hi'],
      code: 2,
      told: 'THREADBOX_API_KEY',
    },
    {
      name: 'with a wrong key',
      env: { THREADBOX_API_KEY: 'tbx_no' },
      args: ['coder', 'Hi'],
      code: 1,
      told: /key|unauthorized/i,
    },
    {
      name: 'with no server',
      env: { THREADBOX_URL: 'http://127.0.0.1:1' },
      args: ['coder', 'Hi'],
      code: 1,
      told: 'no server answers at http://127.0.0.1:1',
    },
    { name: 'with an agent that is not there', env: {}, args: ['nobody', 'Hi'], code: 1, told: 'nobody' },
    {
      name: 'with a URL that is none',
      env: { THREADBOX_URL: 'what' },
      args: ['coder', 'Hi'],
      code: 2,
      told: 'THREADBOX_URL: must be a URL like http://127.0.0.1:7070',
    },
    {
      name: 'with another protocol',
      env: {},
      args: ['coder', 'Hi', '--url', 'ftp://x'],
      code: 2,
      told: '--url: must be a URL',
    },
    { name: 'with no words', env: {}, args: ['coder'], code: 1, told: /message/i },
    { name: 'with an unknown flag', env: {}, args: ['coder', '--colour', 'Hi'], code: 2, told: '--colour' },
  ]
  test.each(mistakes)('$name ends with $code and says why', async ({ env, args, code, told }) => {
    const before = model.requests.length
    const result = await command(['chat', ...args], { env: { ...environment(), ...env } })
    expect([result.code, result.stdout]).toEqual([code, ''])
    expect(result.stderr).toMatch(told)
    expect(result.stderr).not.toMatch(/\.ts:|node_modules|undefined/)
    expect(model.requests.length).toBe(before)
  })
})

describe('threadbox chat, in a terminal', () => {
  test('streams text and folds a tool call to a line', async () => {
    await using screen = terminal('coder')
    await screen.shows('coder › ')
    model.play({ text: 'I count. ', calls: [bash('seq 3')] }, { text: 'Slowly counted to three.', everyMs: 20 })
    screen.type('Count.\r')
    await screen.shows('I count.')
    await screen.shows('● Bash seq 3 → 1 (+2 lines)')
    await screen.shows('Slowly')
    await screen.shows('counted to three.')
    await screen.shows('300 in, 50 out, $0.0')
    await screen.shows('coder › ')
    screen.type(ctrlD)
    expect(await screen.exited).toBe(0)
  })

  test('what a tool prints, and what the model says, cannot steer the terminal', async () => {
    await using screen = terminal('coder')
    model.play({ calls: [bash('printf "\\033]0;owned\\007\\033[2Jx"')] }, { text: 'Done \u001b]0;owned\u0007 so.' })
    await screen.shows('coder › ')
    screen.type('Go.\r')
    await screen.shows('so.')
    await screen.shows('coder › ')
    expect(screen.raw).not.toContain('\x1b]0;owned')
    screen.type(ctrlC)
    expect(await screen.exited).toBe(0)
  })

  test('Ctrl-C cancels the reply on the server, and the conversation goes on', async () => {
    const nap = `4813.${process.pid}`
    await using screen = terminal('coder')
    await screen.shows('coder › ')
    model.play({ text: 'I sleep. ', calls: [bash(`sleep ${nap}`)] })
    screen.type('Sleep.\r')
    await screen.shows('I sleep.')
    await until(() => processesNamed(nap).length > 0)
    screen.type(ctrlC)
    await screen.shows('cancelled')
    await screen.shows('coder › ')
    expect([processesNamed(nap), (await threadOf(await newest())).status]).toEqual([[], 'cancelled'])
    model.play({ text: 'Awake again.' })
    screen.type('Wake up.\r')
    await screen.shows('Awake again.')
    await screen.shows('coder › ')
    screen.type(ctrlC)
    expect(await screen.exited).toBe(0)
  })

  test('Ctrl-C before the first word cancels too', async () => {
    await using screen = terminal('coder')
    await screen.shows('coder › ')
    model.play({ silent: true })
    const before = model.requests.length
    screen.type('Think.\r')
    await until(() => model.requests.length > before)
    screen.type(ctrlC)
    await screen.shows('cancelled')
    await screen.shows('coder › ')
    await until(() => model.openCalls === 0)
  })

  test('Ctrl-C twice leaves while the reply goes on', async () => {
    await using screen = terminal('coder')
    await screen.shows('coder › ')
    model.play({ text: 'word '.repeat(2000), everyMs: 10 })
    screen.type('Talk.\r')
    await screen.shows('word word')
    screen.type(ctrlC + ctrlC)
    expect(await screen.exited).toBe(0)
    await until(() => model.openCalls === 0)
  })

  test('shows the thread on return, and the model has it', async () => {
    {
      await using screen = terminal('coder')
      model.play({ text: 'Pleased to meet you, Ada.' })
      await screen.shows('coder › ')
      screen.type('I am Ada.\r')
      await screen.shows('Pleased to meet you, Ada.')
      await screen.shows('coder › ')
      screen.type(ctrlD)
      await screen.exited
    }
    await using screen = terminal('coder')
    await screen.shows('coder › I am Ada.')
    await screen.shows('Pleased to meet you, Ada.')
    await screen.shows('coder › ')
    model.play(({ body }) => ({ text: `Known: ${JSON.stringify(body.messages).includes('I am Ada.')}.` }))
    screen.type('Who am I?\r')
    await screen.shows('Known: true.')
    await screen.shows('coder › ')
    screen.type(ctrlD)
    await screen.exited
    await using fresh = terminal('coder', '--new')
    await fresh.shows('coder › ')
    expect(fresh.shown).not.toContain('Ada')
  })

  test('begins with a banner, and obeys commands of its own', async () => {
    await using screen = terminal('coder')
    await screen.shows(`coder in a new sandbox at ${server.url}. /help shows commands.`)
    const before = model.requests.length
    screen.type('/help\r')
    for (const each of ['/new', '/sandbox', '/exit']) await screen.shows(`  ${each} `)
    screen.type('/sandbox\r')
    await screen.shows('The first message makes a sandbox.')
    model.play({ text: 'Here I am.' })
    screen.type('Where are you?\r')
    await screen.shows('Here I am.')
    await screen.shows('coder › ')
    const first = await newest()
    screen.type('/sandbox\r')
    await screen.shows(first.threadId)
    screen.type('/new\r')
    await screen.shows('The next message begins a new thread in a new sandbox.')
    model.play({ text: 'Somewhere else.' })
    screen.type('And now?\r')
    await screen.shows('Somewhere else.')
    await screen.shows('coder › ')
    expect((await newest()).sandboxId).not.toBe(first.sandboxId)
    expect(model.requests.length).toBe(before + 2)
    screen.type('/exit\r')
    expect(await screen.exited).toBe(0)
    await using again = terminal('coder')
    await again.shows('coder in sbx_')
  })

  test('says so when the server goes away, and goes on when it is back', async () => {
    await using screen = terminal('coder')
    await screen.shows('coder › ')
    const { port } = new URL(server.url)
    expect(await server.stop()).toBe(0)
    screen.type('Hello?\r')
    await screen.shows(`no server answers at http://127.0.0.1:${port}`)
    await screen.shows('coder › ')
    await server.start()
  })
})
