import { beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createKey } from '../../src/core/access/keys.ts'
import { insertLog, listLogs } from '../../src/db/agent-logs.ts'
import { findAgent } from '../../src/db/agents.ts'
import { findTeam } from '../../src/db/teams.ts'
import type { Agent } from '../../src/model/agent.ts'
import { useApp } from '../support/app.ts'
import {
  archiveOf,
  bundleAgent,
  bundleOf,
  type DeployForm,
  deployEvents,
  deployForm,
  noTools,
} from '../support/bundle.ts'
import { codeOf } from '../support/client.ts'

const app = useApp()

const send = (fields: DeployForm, key = app.key) =>
  app.request('POST', '/v1/agents/deploy', { body: deployForm(fields), key })
const deploy = async (fields: DeployForm) => (await deployEvents(await send(fields))).at(-1)
const bundleFiles = () =>
  existsSync(join(app.directory, 'bundles')) ? readdirSync(join(app.directory, 'bundles')) : []
const agentOf = async (slug: string) => (await app.ask('GET', `/v1/agents/${slug}`)).body

describe('a deploy', () => {
  let events: any[]
  let response: Response
  beforeAll(async () => {
    const templateArchive = await archiveOf({ 'from/template.txt': 'unpacked' })
    const sandboxConfig = {
      setup: ['echo $(cat /home/user/from/template.txt) > /home/user/seen.txt'],
      cwd: '/home/user/w',
    }
    const metadata = {
      model: 'claude-sonnet-4-6',
      permissionMode: 'bypassPermissions',
      maxTurns: 7,
      tools: [],
      hooks: [],
    }
    const mcpConfig = {
      mcpServers: { remote: { url: 'https://mcp.example/m', headers: { authorization: 'secret-header' } } },
    }
    const bundle = await bundleAgent('adder.ts')
    response = await send({ bundle, templateArchive, sandboxConfig, metadata, mcpConfig })
    events = await deployEvents(response)
  })

  test('answers with lines of what is done, then the result', () => {
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/x-ndjson'])
    expect(events.slice(0, -1).map(({ type }) => type)).toEqual(events.slice(0, -1).map(() => 'status'))
    expect(events.length).toBeGreaterThan(2)
    expect(events.at(-1)).toEqual({
      type: 'result',
      result: {
        slug: 'adder',
        agentId: expect.stringMatching(/^agt_/),
        bundleUrl: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
        deployedAt: expect.stringMatching(/Z$/),
        version: 1,
        deploymentId: expect.stringMatching(/^dep_/),
      },
    })
    expect(events.map(({ message }) => message).join('\n')).toContain('Not called here: onFinish')
  })

  test('makes an agent that is listed and shown', async () => {
    const { agents } = (await app.ask('GET', '/v1/agents')).body
    const { result } = events.at(-1)
    const shown = {
      ...{ id: result.agentId, name: 'adder', slug: 'adder', runtime: 'ai-sdk', deployedAt: result.deployedAt },
      ...{ createdAt: expect.any(String), updatedAt: expect.any(String) },
      ...{ activeVersion: 1, activeDeploymentStatus: 'active' },
    }
    expect(agents.find(({ slug }: any) => slug === 'adder')).toEqual(shown)
    const tools = ['add', 'fail', 'hang', 'wait', 'quit']
    const detail = await agentOf('adder')
    expect(detail).toEqual({ ...shown, model: 'claude-sonnet-4-6', totalDeployments: 1, tools: expect.any(Array) })
    expect(detail.tools.map(({ name }: any) => name)).toEqual(tools)
    expect((await app.ask('GET', '/v1/agents/adder/deployments')).body).toEqual({
      deployments: [
        {
          ...{ id: result.deploymentId, version: 1, madeBy: 'deploy', status: 'active', isActive: true, error: null },
          ...{ deployedAt: result.deployedAt, completedAt: result.deployedAt },
          metadata: { model: 'claude-sonnet-4-6', tools: detail.tools },
        },
      ],
    })
  })

  test('takes the word of its client over that of the bundle, and that of the bundle for the rest', () => {
    const { options, sandbox, systemPrompt } = stored('adder')
    expect(systemPrompt).toBe('You add numbers.')
    expect(options).toEqual({
      ...{ maxTurns: 7, permissionMode: 'bypassPermissions' },
      mcpServers: {
        remote: { type: 'http', url: 'https://mcp.example/m', headers: { authorization: 'secret-header' } },
      },
    })
    expect(sandbox.cwd).toBe('/home/user/w')
    expect(sandbox.files).toEqual({ '/home/user/note.txt': 'from the agent' })
  })

  test('gives new sandboxes the archive, before their files and set-up', async () => {
    const id = await app.sandbox({ agent: 'adder' })
    expect(await app.shell(id, 'pwd; cat /home/user/seen.txt /home/user/note.txt; stat -c %u /home/user/from')).toBe(
      '/home/user/w\nunpacked\nfrom the agent0\n',
    )
  })

  test('keeps its files for its owner alone, and nothing readable of what is secret', async () => {
    const files = bundleFiles()
    expect(files).toHaveLength(2)
    for (const name of files) expect(statSync(join(app.directory, 'bundles', name)).mode & 0o777).toBe(0o600)
    expect(statSync(join(app.directory, 'bundles')).mode & 0o777).toBe(0o700)
    for (const name of readdirSync(app.directory).filter(each => each.startsWith('threadbox.db'))) {
      expect(readFileSync(join(app.directory, name), 'latin1')).not.toContain('secret-header')
    }
  })

  test('leaves no sandbox behind', async () => {
    const { sandboxes } = (await app.ask('GET', '/v1/sandboxes')).body
    expect(await app.runtime.backends.get('nsjail')!.list()).toEqual(sandboxes.map(({ sandboxId }: any) => sandboxId))
  })
})

/** The agent as the server has it. */
const stored = (slug: string): Agent => app.beside(db => findAgent(db, findTeam(db, 'default')!.id, slug)!)

describe('what is refused', () => {
  const refused: [string, () => DeployForm | Promise<DeployForm>, string, string][] = [
    ['no slug', () => ({ slug: '', bundle: noTools }), '400 invalid_request', 'slug'],
    ['a slug with a path', () => ({ slug: '../x', bundle: noTools }), '400 invalid_request', 'slug'],
    ['a slug of 101', () => ({ slug: 'a'.repeat(101), bundle: noTools }), '400 invalid_request', 'slug'],
    ['no bundle', () => ({ slug: 'none' }), '400 invalid_request', 'bundle'],
    ['an empty bundle', () => ({ slug: 'none', bundle: bundleOf('') }), '400 invalid_request', 'bundle'],
    ['metadata that is no JSON', () => ({ bundle: noTools, metadata: '{' }), '400 invalid_request', 'metadata'],
    [
      'a bundle of 50 MB and one',
      () => ({ bundle: new Uint8Array(50 * 2 ** 20 + 1) }),
      '413 payload_too_large',
      'bundle',
    ],
    [
      'settings of 10 MB and one',
      () => ({ bundle: noTools, metadata: 'x'.repeat(10 * 2 ** 20 + 1) }),
      '413 payload_too_large',
      'metadata',
    ],
  ]
  test.each(refused)('%s', async (_, fields, code, field) => {
    const files = bundleFiles()
    const answer = await send(await fields())
    const body: any = await answer.json()
    expect([codeOf({ status: answer.status, body }), body.error.field]).toEqual([code, field])
    expect(bundleFiles()).toEqual(files)
  })

  const failing: [string, () => DeployForm | Promise<DeployForm>, RegExp][] = [
    ['a bundle that is no code', () => ({ bundle: bundleOf('this is no code') }), /bundle: /],
    ['a bundle that throws', () => ({ bundle: bundleOf("throw new Error('not today')") }), /not today/],
    ['a bundle without an agent', () => ({ bundle: bundleOf('export default 1') }), /default export is no agent/],
    [
      'a bundle of a tool that does nothing',
      () => ({ bundle: bundleOf('export default {tools:{t:{}}}') }),
      /tool t: it has no execute/,
    ],
    [
      'an archive that is none',
      () => ({ bundle: noTools, templateArchive: bundleOf('hello') }),
      /Unpacking the agent's archive/,
    ],
    ['a model that is none', () => ({ bundle: bundleOf('export default {model:7,tools:{}}') }), /model: /],
    [
      'a rule that is none',
      () => ({ bundle: noTools, sandboxConfig: { networkAllowOut: ['no rule!'] } }),
      /networkAllowOut/,
    ],
    [
      'a secret for an address',
      () => ({
        bundle: noTools,
        sandboxConfig: { secrets: [{ secret: 'A', hosts: ['10.0.0.1'], as: { query: 'a' } }] },
      }),
      /secrets\.0\.hosts\.0/,
    ],
    [
      'isolation that this server does not have',
      () => ({ bundle: noTools, sandboxConfig: { isolation: 'microvm' } }),
      /microvm or stronger is asked for; this server has namespaces \(nsjail\)/,
    ],
    [
      'isolation that is none',
      () => ({ bundle: noTools, sandboxConfig: { isolation: 'vault' } }),
      /sandbox\.isolation/,
    ],
    ['a package of no name', () => ({ bundle: noTools, sandboxConfig: { apt: ['x; reboot'] } }), /apt: no package/],
    ['an engine that is not here', () => ({ bundle: noTools, engine: 'nope' }), /engine: nope is not here/],
    [
      'MCP servers in two places',
      () => ({
        bundle: noTools,
        metadata: { mcpServers: [{ name: 'a', url: 'https://a' }] },
        mcpConfig: { mcpServers: { b: { command: 'b' } } },
      }),
      /mcpConfig: /,
    ],
  ]
  test.each(failing)('%s, with nothing stored', async (_, fields, message) => {
    const files = bundleFiles()
    const last = await deploy({ slug: 'failing', ...(await fields()) })
    expect(last).toMatchObject({ type: 'error', message: expect.stringMatching(message), code: expect.any(String) })
    expect(codeOf(await app.ask('GET', '/v1/agents/failing'))).toBe('404 agent_not_found')
    expect(bundleFiles()).toEqual(files)
  })

  const raw: [string, string, string][] = [
    ['JSON', 'application/json', '{}'],
    ['no boundary', 'multipart/form-data', '--x--'],
    [
      'a form that is cut off',
      'multipart/form-data; boundary=x',
      '--x\r\ncontent-disposition: form-data; name="bundle"\r\n\r\nabc',
    ],
    ['a boundary that is too long', `multipart/form-data; boundary=${'x'.repeat(5000)}`, 'hello'],
    ['a boundary that is empty', 'multipart/form-data; boundary=', 'hello'],
    ['a part without a name', 'multipart/form-data; boundary=x', '--x\r\n\r\nabc\r\n--x--\r\n'],
    ['something else', 'multipart/form-data; boundary=x', 'hello'],
    [
      'a field that is there twice',
      'multipart/form-data; boundary=x',
      `${'--x\r\ncontent-disposition: form-data; name="slug"\r\n\r\na\r\n'.repeat(2)}--x--\r\n`,
    ],
    [
      'a file that is there twice',
      'multipart/form-data; boundary=x',
      `${'--x\r\ncontent-disposition: form-data; name="bundle"; filename="b"\r\n\r\na\r\n'.repeat(2)}--x--\r\n`,
    ],
    [
      'a hundred parts',
      'multipart/form-data; boundary=x',
      `${Array.from({ length: 100 }, (_, n) => `--x\r\ncontent-disposition: form-data; name="f${n}"\r\n\r\na\r\n`).join('')}--x--\r\n`,
    ],
  ]
  test.each(raw)('%s', async (_, type, body) => {
    const files = bundleFiles()
    const headers = { 'content-type': type }
    const answer = await app.ask('POST', '/v1/agents/deploy', undefined, { headers, body: Buffer.from(body) })
    expect(codeOf(answer)).toBe('400 invalid_request')
    expect(bundleFiles()).toEqual(files)
  })

  test('a deploy by a token, and one without a key', async () => {
    const { token } = (await app.ask('POST', '/v1/tokens', {})).body
    for (const [key, code] of [
      [token, '403 forbidden'],
      ['tbx_nobody', '401 unauthorized'],
    ]) {
      const answer = await send({ bundle: noTools }, key)
      expect(codeOf({ status: answer.status, body: await answer.json() })).toBe(code!)
    }
    for (const [method, path, body] of management) {
      expect(codeOf(await app.ask(method, path, body, { key: token }))).toBe('403 forbidden')
    }
  })

  test('what another team asks of an agent', async () => {
    for (const [method, path, body] of management.slice(2)) {
      expect(codeOf(await app.ask(method, path, body, { key: app.foreignKey }))).toBe('404 agent_not_found')
    }
    const { agents } = (await app.ask('GET', '/v1/agents', undefined, { key: app.foreignKey })).body
    expect(agents.map(({ slug }: any) => slug)).toEqual(['echo'])
  })
})

const management: [string, string, object?][] = [
  ['GET', '/v1/me'],
  ['GET', '/v1/agents'],
  ['GET', '/v1/agents/adder'],
  ['GET', '/v1/agents/adder/definition'],
  ['PUT', '/v1/agents/adder/definition', { revision: 'a', definition: {} }],
  ['GET', '/v1/agents/adder/deployments'],
  ['POST', '/v1/agents/adder/rollback', {}],
  ['GET', '/v1/agents/adder/env'],
  ['PUT', '/v1/agents/adder/env', { key: 'A', value: 'b' }],
  ['DELETE', '/v1/agents/adder/env', { key: 'A' }],
  ['GET', '/v1/agents/adder/logs'],
  ['GET', '/v1/agents/adder/logs/sbx_x'],
  ['DELETE', '/v1/agents/adder'],
]

test('who has the key is told', async () => {
  expect((await app.ask('GET', '/v1/me')).body).toMatchObject({
    user: { name: 'test', displayName: 'test' },
    team: { name: 'default', slug: 'default', id: expect.stringMatching(/^team_/) },
  })
})

describe('versions', () => {
  const withPrompt = (prompt: string) =>
    bundleOf(`export default { systemPrompt: '${prompt}', sandbox: { files: { '/v': '${prompt}' } }, tools: {} }`)
  const active = async () => (await agentOf('ladder')).activeVersion
  const rollBack = (body: object = {}) => app.ask('POST', '/v1/agents/ladder/rollback', body)
  const versionIn = async (id: string) => await app.shell(id, 'cat /v')

  test('are numbered; new sandboxes get the active one, others keep theirs', async () => {
    await deploy({ slug: 'ladder', bundle: withPrompt('one') })
    const first = await app.sandbox({ agent: 'ladder' })
    expect((await deploy({ slug: 'ladder', bundle: withPrompt('two') })).result.version).toBe(2)
    const second = await app.sandbox({ agent: 'ladder' })
    expect([await versionIn(first), await versionIn(second)]).toEqual(['one', 'two'])
    expect((await deploy({ slug: 'ladder', bundle: withPrompt('three') })).result.version).toBe(3)
  })

  test('are rolled back, by default to the one before', async () => {
    const { status, body } = await rollBack()
    expect([status, body]).toEqual([
      200,
      { slug: 'ladder', version: 2, deploymentId: expect.stringMatching(/^dep_/), message: expect.any(String) },
    ])
    expect(await active()).toBe(2)
    expect(await versionIn(await app.sandbox({ agent: 'ladder' }))).toBe('two')
    expect((await rollBack({ version: 1 })).body.version).toBe(1)
    expect(codeOf(await rollBack())).toBe('409 conflict')
    expect(codeOf(await rollBack({ version: 9 }))).toBe('404 not_found')
    expect(codeOf(await rollBack({ version: 0 }))).toBe('400 invalid_request')
    expect((await rollBack({ version: 3 })).body.version).toBe(3)
    const { deployments } = (await app.ask('GET', '/v1/agents/ladder/deployments')).body
    expect(deployments.map(({ version, isActive }: any) => [version, isActive])).toEqual([
      [3, true],
      [2, false],
      [1, false],
    ])
  })

  test('of deploys at once are all different', async () => {
    const results = await Promise.all(['a', 'b', 'c'].map(each => deploy({ slug: 'ladder', bundle: withPrompt(each) })))
    expect(results.map(({ result }) => result.version).sort()).toEqual([4, 5, 6])
  })

  test('bring files of megabytes', async () => {
    const source = "export default { sandbox: { files: { '/big': 'x'.repeat(3 * 2 ** 20) } }, tools: {} }"
    expect(await deploy({ slug: 'large', bundle: bundleOf(source) })).toMatchObject({ type: 'result' })
    expect(await app.shell(await app.sandbox({ agent: 'large' }), 'wc -c < /big')).toBe('3145728\n')
  })

  test('keep what the operator decided', async () => {
    app.agent('owned', { base: '/nowhere' }, { options: { maxAgentBudgetUsd: 3 } })
    const last = await deploy({ slug: 'owned', bundle: noTools })
    expect(last).toMatchObject({ type: 'error', message: expect.stringContaining('/nowhere') })
    app.agent('owned', {}, { options: { maxAgentBudgetUsd: 3 } })
    expect((await deploy({ slug: 'owned', bundle: noTools })).type).toBe('result')
    expect(stored('owned').options.maxAgentBudgetUsd).toBe(3)
  })

  test('have the rules that they name, and those of before where they name none regression', async () => {
    const named = { allow: ['Bash(ls)'], deny: ['Bash(rm:*)'], approvals: 'on', disallowedTools: ['WebFetch'] }
    expect((await deploy({ slug: 'ruled', bundle: noTools, metadata: { ...named, model: 'm' } })).type).toBe('result')
    expect(stored('ruled').options).toEqual(named as never)
    await deploy({ slug: 'ruled', bundle: noTools, metadata: { model: 'm', options: { allow: [] }, ask: ['Bash'] } })
    expect(stored('ruled').options).toEqual({ ...named, allow: [], ask: ['Bash'] } as never)
    const wrong = await deploy({ slug: 'ruled', bundle: noTools, metadata: { deny: ['Bash('] } })
    expect(JSON.stringify(wrong)).toContain('options.deny.0')
    expect(stored('ruled').options.deny).toEqual(['Bash(rm:*)'])
  })

  test('have no more than the operator gives a sandbox, by zero either: regression', async () => {
    const { limits } = app.runtime.config
    const limitsIn = async (sandboxConfig: object) => {
      const fields = { slug: 'greedy', bundle: noTools, metadata: { model: 'm', runtime: 'echo' }, sandboxConfig }
      expect((await deploy(fields)).type).toBe('result')
      await app.sandbox({ agent: 'greedy' })
      const path = join(app.directory, 'sandboxes', app.environmentIds.at(-1)!, 'meta.json')
      return JSON.parse(readFileSync(path, 'utf8')).limits
    }
    expect(await limitsIn({ memoryMB: 0, cpuCount: 0 })).toEqual(limits)
    expect(await limitsIn({ memoryMB: 99_999, cpuCount: 99 })).toEqual(limits)
    expect(await limitsIn({ memoryMB: 512 })).toEqual({ ...limits, memoryMb: 512 })
  })

  test('that are gone back to do not undo what the operator decided since: regression', async () => {
    app.agent('tamed', {}, { options: { maxAgentBudgetUsd: 100 } })
    expect((await deploy({ slug: 'tamed', bundle: noTools })).type).toBe('result')
    app.agent('tamed', { image: 'mended' }, { options: { maxAgentBudgetUsd: 3 } })
    expect((await app.ask('POST', '/v1/agents/tamed/rollback', {})).body).toMatchObject({ version: 1 })
    const { options, sandbox } = stored('tamed')
    expect([options.maxAgentBudgetUsd, sandbox.image]).toEqual([3, 'mended'])
  })

  test('go with their agent, their files when no sandbox needs them', async () => {
    const bundle = await bundleAgent('adder.ts', 'zod-3')
    await deploy({ slug: 'gone', bundle })
    const before = bundleFiles().length
    const id = await app.sandbox({ agent: 'gone', setup: [] })
    const { status, body } = await app.ask('DELETE', '/v1/agents/gone')
    expect([status, body]).toEqual([200, { success: true, slug: 'gone', message: expect.any(String) }])
    expect(codeOf(await app.ask('GET', '/v1/agents/gone'))).toBe('404 agent_not_found')
    expect(bundleFiles()).toHaveLength(before)
    await app.ask('DELETE', `/v1/sandboxes/${id}`)
    expect(bundleFiles()).toHaveLength(before - 1)
  })
})

describe('variables', () => {
  const env = (method: string, body?: object) => app.ask(method, '/v1/agents/adder/env', body)

  test('are set, listed by name, and taken away', async () => {
    expect((await env('GET')).body).toEqual({ keys: [] })
    expect((await env('PUT', { key: 'GREETING', value: 'secret-hello' })).body).toEqual({ keys: ['GREETING'] })
    expect((await env('PUT', { key: 'B', value: 'secret-b' })).body).toEqual({ keys: ['B', 'GREETING'] })
    expect((await env('GET')).body).toEqual({ keys: ['B', 'GREETING'] })
    expect((await env('DELETE', { key: 'B' })).body).toEqual({ keys: ['GREETING'] })
  })

  test('reach the set-up and commands of new sandboxes, below what their request brings, and no file', async () => {
    const id = await app.sandbox({ agent: 'adder', setup: ['echo $GREETING > /home/user/greeting'] })
    expect(await app.shell(id, 'cat /home/user/greeting; echo $GREETING')).toBe('secret-hello\nsecret-hello\n')
    const own = await app.sandbox({ agent: 'adder', envs: { GREETING: 'own' } })
    expect(await app.shell(own, 'echo $GREETING')).toBe('own\n')
    for (const name of readdirSync(app.directory).filter(each => each.startsWith('threadbox.db'))) {
      expect(readFileSync(join(app.directory, name), 'latin1')).not.toContain('secret-hello')
    }
  })

  test('are wrong with a name that is none, or a value of 64 kB and one', async () => {
    expect(codeOf(await env('PUT', { key: '1A', value: '' }))).toBe('400 invalid_request')
    expect(codeOf(await env('PUT', { key: 'A', value: 'x'.repeat(65_537) }))).toBe('400 invalid_request')
    expect(codeOf(await env('DELETE'))).toBe('400 invalid_request')
  })
})

describe('logs', () => {
  const logs = async (query = '') => (await app.ask('GET', `/v1/agents/adder/logs${query}`)).body

  test('have deploys, set-up and variables, with names in the place of values', async () => {
    const lines = (await logs()).logs
    const text = JSON.stringify(lines)
    expect(text).toContain('adder is at version 1')
    expect(text).toContain('The variable B was taken away.')
    expect(text).toContain('set-up command 1 of 2 is done')
    expect(text).not.toContain('secret-')
    await app.ask('POST', '/v1/sandboxes', { agent: 'adder', setup: ['echo it is $GREETING; exit 4'] })
    expect((await logs()).logs.at(-1)).toMatchObject({
      ...{ source: 'setup', level: 'error', at: expect.stringMatching(/Z$/) },
      text: 'The set-up command 2 of 2 (echo …) ended with exit code 4: it is [GREETING]',
    })
  })

  test('page through the sandboxes of the agent', async () => {
    const all = (await logs()).sandboxes
    expect(all).toHaveLength(3)
    expect(all[0]).toMatchObject({
      status: 'active',
      agent: { slug: 'adder' },
      threads: [],
      client_sandbox_id: all[0].id,
    })
    const page = await logs('?limit=2')
    expect(page.sandboxes).toEqual(all.slice(0, 2))
    expect((await logs(`?limit=2&cursor=${page.nextCursor}`)).sandboxes).toEqual(all.slice(2))
    expect((await logs('?status=error')).sandboxes).toEqual([])
    expect((await logs(`?search=${all[1].sandbox_id}`)).sandboxes).toEqual([all[1]])
    expect((await logs(`?createdBefore=${all[1].created_at}`)).sandboxes).toEqual([all[2]])
    expect((await logs(`?createdAfter=${all[1].created_at}`)).sandboxes).toEqual(all.slice(0, 2))
    expect((await app.ask('GET', '/v1/agents/adder/logs?createdAfter=soon')).status).toBe(400)
  })

  test('are bounded', () => {
    app.beside(db => {
      const { id } = stored('ladder')
      for (let n = 0; n < 1100; n++) insertLog(db, id, { source: 'engine', level: 'info', text: `line ${n}` })
      expect(listLogs(db, id, 5000)).toHaveLength(1000)
      expect(listLogs(db, id, 1)[0]?.text).toBe('line 1099')
    })
  })
})

test('a deploy binds secrets, and one that names none leaves them; a key without the scope adds none: regression', async () => {
  const secrets = [{ secret: 'A', hosts: ['a.example.com'], as: { query: 'key' } }]
  const bound = async () => (await app.ask('GET', '/v1/agents/bound/definition')).body.definition.secrets
  const { key } = app.beside(db => createKey(db, { team: 'default', name: 'deployer', scopes: ['deploy'] }))
  const last = async (fields: DeployForm, by: string) =>
    (await deployEvents(await send({ slug: 'bound', bundle: noTools, ...fields }, by))).at(-1)
  expect(await last({ sandboxConfig: { secrets } }, key)).toMatchObject({ type: 'error', code: 'forbidden' })
  expect(await last({ sandboxConfig: { secrets } }, app.key)).toMatchObject({ type: 'result' })
  expect(await bound()).toEqual(secrets)
  expect(await last({}, key)).toMatchObject({ type: 'result' })
  expect(await bound()).toEqual(secrets)
  const elsewhere = [{ ...secrets[0], hosts: ['evil.example.com'] }]
  expect(await last({ sandboxConfig: { secrets: elsewhere } }, key)).toMatchObject({ type: 'error', code: 'forbidden' })
  expect(await last({ sandboxConfig: { secrets: [] } }, key)).toMatchObject({ type: 'result' })
  expect(await bound()).toBeUndefined()
})
