import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { aiSdk } from '../../plugins/ai-sdk/index.ts'
import { createBundles } from '../../src/core/agents/bundles.ts'
import { placeTools, TOOLS_LOG } from '../../src/core/agents/user-tools.ts'
import type { Environment } from '../../src/plugin-api/index.ts'
import { engineOf } from '../engines/engine-of.ts'
import { cleanUpAfterEach, openTemporary } from '../runs/support.ts'
import { bundleAgent } from '../support/bundle.ts'
import { startModelServer } from '../support/model-server.ts'
import { openTestSandbox, type TestSandbox } from '../support/sandbox.ts'
import { temporaryDirectory } from '../support/server.ts'
import { playTurn } from '../support/turn.ts'

/** A backend that does not bring this program's executable, as a cloud's. */

cleanUpAfterEach()
const model = startModelServer()
const directory = temporaryDirectory()
let sandbox: TestSandbox
beforeAll(async () => {
  sandbox = await openTestSandbox()
}, 60_000)
afterAll(async () => {
  await sandbox.close()
  await model.stop()
  rmSync(directory, { recursive: true })
}, 60_000)
beforeEach(() => sandbox.shell('rm -rf /opt/threadbox'))

const bare = (spawn?: Environment['spawn']): Environment => {
  const { executable: _, ...environment } = sandbox.environment
  return { ...environment, ...(spawn && { spawn }) }
}

async function place(environment: Environment): Promise<string[]> {
  const bundles = createBundles(openTemporary(), directory)
  const { name } = await bundles.put('bundle', [await bundleAgent('adder.ts')] as never, 1e9)
  return await placeTools(environment, bundles, name)
}

test('an agent’s own tools run by the node of the sandbox', async () => {
  const environment = bare()
  const [command = '', ...args] = await place(environment)
  expect(command).toEndWith('/node')
  const env = { GREETING: 'hi', THREADBOX_TOOL_TIMEOUT_MS: '2500' }
  const calls = [{ name: 'add', input: { a: 1 } }, { name: 'fail' }, { name: 'hang' }, { name: 'add', input: { a: 4 } }]
  model.play(...calls.map(call => ({ calls: [{ ...call, name: `mcp__user-tools__${call.name}` }] })), { text: 'Done.' })
  const server = { type: 'stdio' as const, command, args: [...args, '--log', TOOLS_LOG], env }
  const { end, parts } = await playTurn({
    ...{ engine: engineOf(aiSdk), environment, prompt: 'Go.' },
    context: { openModel: () => model.access('anthropic'), options: { mcpServers: { 'user-tools': server } } },
  })
  expect(end).toEqual({ status: 'completed' })
  expect(
    parts.filter(({ type }) => type.startsWith('tool-')).map(({ output, errorText }) => output ?? errorText),
  ).toEqual(['2 hi /home/user', 'it broke', 'hang did not end within 2500 ms and was stopped.', '5 hi /home/user'])
  expect(await sandbox.shell(`cat ${TOOLS_LOG}`)).toBe('adding in hi\nnot a message\n'.repeat(2))
  expect(await sandbox.shell('pgrep -fc "[t]ools-.*mjs" || true')).toBe('0\n')
})

test('a sandbox with neither bun nor node says so', async () => {
  const { environment } = sandbox
  const withoutPath = bare(options => environment.spawn({ ...options, env: { ...options.env, PATH: '/nowhere' } }))
  await expect(place(withoutPath)).rejects.toThrow('want bun or node in the sandbox, and neither is there')
})
