import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findAgent } from '../../src/db/agents.ts'
import { findTeam } from '../../src/db/teams.ts'
import { useApp } from '../support/app.ts'
import { bundleAgent, bundleOf, deployEvents, deployForm } from '../support/bundle.ts'
import { say } from '../support/chat.ts'
import { codeOf } from '../support/client.ts'
import { readChunks } from '../support/sse.ts'

const app = useApp(['--memory-mb', '1024'])

const read = async (slug: string, query = '') =>
  (await app.ask('GET', `/v1/agents/${slug}/definition${query}`)).body as Shown
interface Shown {
  version: number | null
  revision: string
  definition: any
  variables: string[]
}
/** Changes what is read, and sends it back. */
async function edit(slug: string, change: (definition: any) => void) {
  const { revision, definition } = await read(slug)
  change(definition)
  return await put(slug, { revision, definition })
}
/** Sets a field, as `options.maxTurns`; without a value takes it away. */
const set = (path: string, value: unknown) => (definition: any) => {
  const names = path.split('.')
  const last = names.pop()!
  const owner = names.reduce((each, name) => each[name], definition)
  if (value === undefined) delete owner[last]
  else owner[last] = value
}
const put = (slug: string, body: object, key = app.key) =>
  app.ask('PUT', `/v1/agents/${slug}/definition`, body, { key })
const rollBack = (slug: string, body: object = {}) => app.ask('POST', `/v1/agents/${slug}/rollback`, body)
const versions = async (slug: string) =>
  (await app.ask('GET', `/v1/agents/${slug}/deployments`)).body.deployments.map(
    ({ version, madeBy, isActive }: any) => `${version} ${madeBy}${isActive ? ' active' : ''}`,
  )
const logOf = async (slug: string): Promise<string[]> =>
  (await app.ask('GET', `/v1/agents/${slug}/logs`)).body.logs.map(({ text }: any) => text)
const stored = (slug: string) => app.beside(db => findAgent(db, findTeam(db, 'default')!.id, slug)!)
const deploy = async (slug: string, bundle: Uint8Array<ArrayBuffer>, fields: object = {}) => {
  const body = deployForm({ slug, bundle, ...fields })
  return (await deployEvents(await app.request('POST', '/v1/agents/deploy', { body }))).at(-1)
}
/** The model that answers in a sandbox. */
async function modelIn(slug: string, sandboxId: string): Promise<string | undefined> {
  const body = { sandboxId, messages: [say('a')] }
  const chunks = await readChunks(await app.request('POST', `/v1/chat/${slug}`, { body }))
  return chunks.find(({ type }: any) => type === 'message-metadata').messageMetadata.model
}

const secrets = {
  sandbox: { envs: { TOKEN: 'secret-env' } },
  options: {
    maxTurns: 5,
    mcpServers: {
      far: { type: 'http', url: 'https://mcp.example/a', headers: { authorization: 'secret-header' } },
      keyed: { type: 'sse', url: 'https://mcp.example/b?key=secret-query' },
      near: { type: 'stdio', command: 'serve', args: ['-x'], env: { KEY: 'secret-setting' } },
    },
    acp: { preset: 'goose', env: { GOOSE: 'secret-goose' } },
  },
}

describe('the definition of an agent', () => {
  test('is its file, with null in the place of each secret', async () => {
    app.agent('open', secrets.sandbox, { options: secrets.options, systemPrompt: 'Be brief.' })
    await app.ask('PUT', '/v1/agents/open/env', { key: 'VARIABLE', value: 'secret-variable' })
    const shown = await read('open')
    expect(shown).toEqual({
      ...{ slug: 'open', version: null, revision: expect.stringMatching(/^[\w-]{22}$/), variables: ['VARIABLE'] },
      definition: {
        ...{ slug: 'open', name: 'open', engine: 'echo', systemPrompt: 'Be brief.' },
        options: {
          maxTurns: 5,
          acp: { preset: 'goose', env: { GOOSE: null } },
          mcpServers: {
            far: { type: 'http', url: 'https://mcp.example/a', headers: { authorization: null } },
            keyed: { type: 'sse', url: null },
            near: { type: 'stdio', command: 'serve', args: ['-x'], env: { KEY: null } },
          },
        },
        sandbox: { files: {}, envs: { TOKEN: null }, setup: [], limits: {} },
      },
    } as never)
    expect(JSON.stringify(shown)).not.toContain('secret-')
  })

  test('is changed as a whole, and keeps the secrets', async () => {
    const { status, body } = await edit('open', definition => {
      definition.systemPrompt = 'Be long.'
      definition.options.maxTurns = 6
      definition.sandbox.envs.NEW = 'secret-new'
      definition.options.mcpServers.far.headers.second = 'secret-second'
    })
    expect([status, body.version, body.definition.systemPrompt]).toEqual([200, 2, 'Be long.'])
    expect(body).toEqual(await read('open'))
    const { sandbox, options, systemPrompt } = stored('open')
    expect([systemPrompt, options.maxTurns]).toEqual(['Be long.', 6])
    expect(sandbox.envs).toEqual({ TOKEN: 'secret-env', NEW: 'secret-new' })
    const { mcpServers } = secrets.options
    const headers = { ...mcpServers.far.headers, second: 'secret-second' }
    expect(options.mcpServers).toEqual({ ...mcpServers, far: { ...mcpServers.far, headers } } as never)
    expect(options.acp).toEqual(secrets.options.acp as never)
    expect((await logOf('open')).at(-1)).toBe(
      'open is at version 2, by an edit of systemPrompt, options.maxTurns, options.mcpServers, sandbox.envs.',
    )
    for (const name of ['threadbox.db', 'threadbox.db-wal'])
      expect(readFileSync(join(app.directory, name), 'latin1')).not.toContain('secret-')
  })

  test('that is sent as it was makes no version', async () => {
    app.agent('same')
    expect((await edit('same', () => {})).body.version).toBeNull()
    await edit('same', set('model', 'm'))
    expect((await edit('same', set('slug', undefined))).body.version).toBe(2)
    expect(await versions('same')).toEqual(['2 edit active', '1 apply'])
  })

  test('sends no header that is kept to another address: regression', async () => {
    const answer = await edit('open', set('options.mcpServers.far.url', 'https://evil.example'))
    expect([codeOf(answer), answer.body.error.field]).toEqual([
      '400 invalid_request',
      'options.mcpServers.far.headers.authorization',
    ])
    const other = await edit('open', ({ options }) => {
      options.mcpServers.evil = { ...options.mcpServers.far, url: 'https://evil.example' }
    })
    expect(codeOf(other)).toBe('400 invalid_request')
  })
})

describe('what is refused', () => {
  const wrong: [string, (definition: any) => void, string, RegExp][] = [
    ['a limit that is no number', set('options.maxTurns', 'x'), 'options.maxTurns', /whole number/],
    ['a rule that is none', set('options.allow', ['Bash(']), 'options.allow', /options\.allow\.0: /],
    ['a network rule', set('options.networkAllowOut', ['?']), 'options.networkAllowOut', /CIDR/],
    ['an unknown option', set('options.maxTurn', 5), 'options.maxTurn', /not known/],
    ['an unknown field', set('prompt', ''), 'prompt', /not known/],
    ['an engine that is not here', set('engine', 'ech'), 'engine', /did you mean echo/],
    ['no name', set('name', ''), 'name', /must not be empty/],
    ['another slug', set('slug', 'other'), 'slug', /keeps its slug/],
    ['too little memory', set('sandbox.limits.memoryMb', 1), 'sandbox.limits.memoryMb', /too low/],
    ['a value to keep that is not there', set('sandbox.envs.B', null), 'sandbox.envs.B', /null keeps/],
    [
      'a secret of a name that every object has',
      set('sandbox.envs', JSON.parse('{"constructor":null}')),
      'sandbox.envs.constructor',
      /null keeps/,
    ],
    [
      'an address to keep that is not there',
      set('options.mcpServers', { m: { type: 'http', url: null } }),
      'options.mcpServers.m.url',
      /null keeps/,
    ],
    ['a sandbox that is no object', set('sandbox', 5), 'sandbox', /must be an object/],
    ['options that are a list', set('options', []), 'options', /must be an object/],
  ]
  test.each(wrong)('%s', async (_, change, field, words) => {
    app.agent('strict')
    const answer = await edit('strict', change)
    expect([codeOf(answer), answer.body.error.field]).toEqual(['400 invalid_request', field])
    expect(answer.body.message).toMatch(words)
    expect((await read('strict')).version).toBeNull()
  })

  test('everything that is wrong is said at once, by field', async () => {
    const { body } = await edit('strict', definition => {
      definition.name = 5
      definition.engine = 'ekko'
      definition.options.maxTurns = 0
    })
    expect(body.error.faults).toEqual([
      { field: 'name', message: 'name: must be a text' },
      { field: 'options.maxTurns', message: 'options.maxTurns: must be 1 or more' },
      { field: 'engine', message: expect.stringMatching(/^engine: there is no engine ekko/) },
    ])
  })

  const owned: [string, (definition: any) => void, string][] = [
    ['its base', set('sandbox.base', 'mine'), 'sandbox.base'],
    ['its image', set('sandbox.image', 'mine'), 'sandbox.image'],
    ['its template', set('sandbox.template', 'mine'), 'sandbox.template'],
    ['what it may spend in all', set('options.maxAgentBudgetUsd', 9), 'options.maxAgentBudgetUsd'],
    ['its program', set('options.acp', { command: 'mine' }), 'options.acp'],
    ['weaker isolation', set('sandbox.isolation', 'namespaces'), 'sandbox.isolation'],
    ['more memory', set('sandbox.limits.memoryMb', 1025), 'sandbox.limits.memoryMb'],
    ['all memory', set('sandbox.limits.memoryMb', 0), 'sandbox.limits.memoryMb'],
  ]
  test.each(owned)('%s, which the operator decides: regression', async (_, change, field) => {
    app.agent(
      'owned',
      { image: 'theirs', isolation: 'container', limits: { memoryMb: 512 } },
      { options: { maxAgentBudgetUsd: 3 } },
    )
    const answer = await edit('owned', change)
    expect([codeOf(answer), answer.body.error.field]).toEqual(['403 forbidden', field])
  })

  test('nothing of the operator’s goes by leaving it out: regression', async () => {
    const { body } = await edit('owned', definition => {
      definition.model = 'm'
      delete definition.sandbox.image
      delete definition.sandbox.isolation
      delete definition.options.maxAgentBudgetUsd
    })
    expect(body.definition).toMatchObject({
      sandbox: { image: 'theirs', isolation: 'container' },
      options: { maxAgentBudgetUsd: 3 },
    })
  })

  test('nothing of the operator’s comes back with an earlier version: regression', async () => {
    const { limits, acp, maxAgentBudgetUsd } = {
      limits: { memoryMb: 9999 },
      acp: { preset: 'goose' },
      maxAgentBudgetUsd: 9,
    }
    app.agent('taken', { image: 'old', limits }, { options: { acp, maxAgentBudgetUsd } })
    await edit('taken', set('model', 'm'))
    app.agent('taken', { image: 'new', isolation: 'container' })
    expect((await rollBack('taken', { version: 1 })).status).toBe(200)
    const { sandbox, options, operatorLimits } = stored('taken')
    expect([sandbox.image, sandbox.isolation]).toEqual(['new', 'container'])
    expect([options.acp, options.maxAgentBudgetUsd]).toEqual([undefined, undefined])
    expect(operatorLimits).toEqual({})
  })

  test('a token, another team, a version that is not there', async () => {
    const { token } = (await app.ask('POST', '/v1/tokens', { agent: 'strict' })).body
    const { revision, definition } = await read('strict')
    for (const [key, code] of [
      [token, '403 forbidden'],
      [app.foreignKey, '404 agent_not_found'],
    ]) {
      expect(codeOf(await app.ask('GET', '/v1/agents/strict/definition', undefined, { key }))).toBe(code)
      expect(codeOf(await put('strict', { revision, definition: { ...definition, model: 'm' } }, key))).toBe(code)
    }
    expect(codeOf(await app.ask('GET', '/v1/agents/strict/definition?version=9'))).toBe('404 not_found')
    expect(codeOf(await app.ask('GET', '/v1/agents/strict/definition?version=x'))).toBe('400 invalid_request')
  })
})

describe('of two who edit at once', () => {
  test('the slower one is refused, and nothing is lost', async () => {
    app.agent('raced')
    const { revision, definition } = await read('raced')
    const answers = await Promise.all(
      ['one', 'two', 'three'].map(model => put('raced', { revision, definition: { ...definition, model } })),
    )
    expect(answers.map(codeOf).sort()).toEqual(['200 undefined', '409 conflict', '409 conflict'])
    expect(stored('raced').model).toBe(answers.find(({ status }) => status === 200)?.body.definition.model)
    expect(await versions('raced')).toEqual(['2 edit active', '1 apply'])
  })

  test('a file that is applied, and a roll back, count as an edit', async () => {
    app.agent('raced', {}, { model: 'a' })
    const before = await read('raced')
    app.agent('raced', {}, { model: 'b' })
    expect(codeOf(await put('raced', before))).toBe('409 conflict')
    const applied = await read('raced')
    await rollBack('raced', { version: 1 })
    expect(codeOf(await put('raced', applied))).toBe('409 conflict')
  })

  test('a variable that is set meanwhile is in nobody’s way', async () => {
    const { revision, definition } = await read('raced')
    await app.ask('PUT', '/v1/agents/raced/env', { key: 'A', value: 'b' })
    expect((await put('raced', { revision, definition: { ...definition, model: 'c' } })).status).toBe(200)
  })
})

describe('versions', () => {
  test('are gone back over, edits and the operator’s files alike', async () => {
    app.agent('walker', {}, { model: 'one', systemPrompt: 'a' })
    await edit('walker', set('model', 'two'))
    await edit('walker', set('systemPrompt', undefined))
    app.agent('walker', {}, { model: 'four' })
    expect(await versions('walker')).toEqual(['4 apply active', '3 edit', '2 edit', '1 apply'])
    const now = async () => {
      const { definition } = await read('walker')
      return [definition.model, definition.systemPrompt]
    }
    expect(await now()).toEqual(['four', undefined])
    for (const [version, model, prompt] of [
      [3, 'two', undefined],
      [2, 'two', 'a'],
      [1, 'one', 'a'],
    ]) {
      expect((await rollBack('walker')).body).toMatchObject({ version })
      expect(await now()).toEqual([model, prompt] as never)
      expect((await read('walker', '?version=4')).definition.model).toBe('four')
    }
    expect(codeOf(await rollBack('walker'))).toBe('409 conflict')
    expect((await rollBack('walker', { version: 3 })).status).toBe(200)
    expect((await logOf('walker')).slice(-6)).toEqual([
      'walker is at version 3, by an edit of systemPrompt.',
      "walker is at version 4, by the operator's file.",
      ...[3, 2, 1, 3].map(version => `walker is back at version ${version}.`),
    ])
  })

  test('of a file that is applied again as it is are no more', async () => {
    app.agent('steady', {}, { model: 'one' })
    await edit('steady', set('model', 'two'))
    for (let times = 0; times < 2; times++) app.agent('steady', {}, { model: 'one' })
    expect(await versions('steady')).toEqual(['3 apply active', '2 edit', '1 apply'])
  })

  test('that a running thread began with stay its own', async () => {
    app.agent('loyal', {}, { model: 'one' })
    const first = await app.sandbox({ agent: 'loyal' })
    await edit('loyal', set('model', 'two'))
    const second = await app.sandbox({ agent: 'loyal' })
    await edit('loyal', set('model', undefined))
    const third = await app.sandbox({ agent: 'loyal' })
    const all = async () => [
      await modelIn('loyal', first),
      await modelIn('loyal', second),
      await modelIn('loyal', third),
    ]
    const bare = await modelIn('loyal', third)
    expect(await all()).toEqual(['one', 'two', bare])
    await edit('loyal', set('model', 'four'))
    expect(await all()).toEqual(['one', 'two', bare])
    await rollBack('loyal', { version: 1 })
    expect(await all()).toEqual(['one', 'two', bare])
    // What the operator's file made goes on with the file.
    const fourth = await app.sandbox({ agent: 'loyal' })
    app.agent('loyal', {}, { model: 'five' })
    expect([await modelIn('loyal', first), await modelIn('loyal', fourth)]).toEqual(['one', 'five'])
  })

  test('of a bundle keep its tools over an edit, and a deploy over the edit wins', async () => {
    await deploy('tooled', await bundleAgent('adder.ts'))
    await edit('tooled', set('systemPrompt', 'Add slowly.'))
    const { tools, activeVersion } = (await app.ask('GET', '/v1/agents/tooled')).body
    expect([activeVersion, tools.map(({ name }: any) => name)]).toEqual([2, expect.arrayContaining(['add'])])
    const id = await app.sandbox({ agent: 'tooled' })
    expect(app.beside(db => db.query('select bundle from sandboxes where id = ?').get(id))).toEqual({
      bundle: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    await deploy('tooled', bundleOf("export default { systemPrompt: 'Add fast.', tools: {} }"))
    expect((await read('tooled')).definition.systemPrompt).toBe('Add fast.')
    expect(await versions('tooled')).toEqual(['3 deploy active', '2 edit', '1 deploy'])
    expect((await rollBack('tooled')).body.version).toBe(2)
    expect((await read('tooled')).definition.systemPrompt).toBe('Add slowly.')
  })
})

describe('limits of the operator', () => {
  const memoryOf = async (slug: string) => {
    await app.sandbox({ agent: slug })
    const path = join(app.directory, 'sandboxes', app.environmentIds.at(-1)!, 'meta.json')
    return JSON.parse(readFileSync(path, 'utf8')).limits.memoryMb
  }

  test('above the server’s stay over an edit and a roll back, as long as they are the operator’s: regression', async () => {
    app.agent('large', { limits: { memoryMb: 1500 } })
    await edit('large', set('model', 'm'))
    expect(await memoryOf('large')).toBe(1500)
    await rollBack('large')
    expect(await memoryOf('large')).toBe(1500)
    app.agent('large', { limits: { memoryMb: 700 } })
    expect(await memoryOf('large')).toBe(700)
    await rollBack('large', { version: 2 })
    expect(await memoryOf('large')).toBe(1024)
    await deploy('large', bundleOf('export default { tools: {} }'), { sandboxConfig: { memoryMB: 1500 } })
    expect(await memoryOf('large')).toBe(1024)
  })
})
