// Claude Code and Codex make a sandbox and run a command in it by MCP, asked to by a model that plays a script.
// bun scripts/proofs/mcp-programs.ts (builds first: scripts/build; the programs: scripts/agent-programs)
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ModelCall, startModelServer } from '../../test/support/model-server.ts'

const root = join(import.meta.dir, '../..')
const scratch = mkdtempSync(join(tmpdir(), 'threadbox-proof-'))
const key = `proof-${crypto.randomUUID()}`
const model = startModelServer()
const server = Bun.spawn([join(root, 'dist/threadbox'), 'serve', '--data-dir', join(scratch, 'data'), '--port', '0'], {
  env: { PATH: process.env.PATH ?? '', HOME: scratch, THREADBOX_API_KEY: key },
  stdio: ['ignore', 'pipe', 'ignore'],
})

async function listening(): Promise<string> {
  let said = ''
  for await (const bytes of server.stdout) {
    said += new TextDecoder().decode(bytes)
    const [, at] = /^threadbox listening on (\S+)\n/m.exec(said) ?? []
    if (at) return at
  }
  throw new Error(`the server did not start: ${said}`)
}

const commonEnvironment = { PATH: process.env.PATH ?? '', HOME: scratch, KEY: key }

/** Lets a program work through the calls. Returns the model's view of the last result. */
async function tryProgram(
  name: string,
  call: (tool: string, input: object) => ModelCall,
  command: string[],
  env: object,
) {
  const exec = (sandboxId: string) => call('exec', { sandboxId, command: 'echo $((6 * 7)) in $(hostname)' })
  model.play(
    { calls: [call('create_sandbox', { agent: 'echo' })] },
    request => {
      const [id = ''] = /sbx_[0-9a-f-]{36}/.exec(JSON.stringify(request.body)) ?? []
      return { calls: [exec(id)] }
    },
    { text: 'done' },
  )
  const before = model.requests.length
  const child = Bun.spawn(command, {
    cwd: scratch,
    env: { ...commonEnvironment, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 60_000,
  })
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  const heard = JSON.stringify(model.requests.slice(before).at(-1)?.body ?? '')
  const isRight = heard.includes('42 in ')
  console.log(`${name}: ${isRight ? 'ran a command in its sandbox' : `failed\n${output}${errors}`.slice(0, 4000)}`)
  return isRight
}

let isGood = false
try {
  const url = `${await listening()}/v1/mcp`
  const program = (path: string) => join(root, '.cache/agents', path)
  const servers = { threadbox: { type: 'http', url, headers: { Authorization: `Bearer ${key}` } } }
  const config = join(scratch, 'mcp.json')
  await Bun.write(config, JSON.stringify({ mcpServers: servers }))
  const claude = await tryProgram(
    'claude-code',
    (tool, input) => ({ name: `mcp__threadbox__${tool}`, input }),
    [
      program('claude-code/node_modules/.bin/claude'),
      ...['-p', 'Try it.', '--mcp-config', config, '--allowedTools', 'mcp__threadbox', '--model', 'claude-sonnet-4-6'],
    ],
    {
      ANTHROPIC_BASE_URL: model.access('anthropic').baseUrl.replace(/\/v1$/, ''),
      ANTHROPIC_API_KEY: 'fake',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
  )
  const baseUrl = model.access('openai-responses').baseUrl
  const settings = [
    'model_provider="fake"',
    'model="gpt-5.4"',
    `model_providers.fake={name="fake",base_url="${baseUrl}",wire_api="responses",env_key="KEY"}`,
    `mcp_servers.threadbox={url="${url}",bearer_token_env_var="KEY",default_tools_approval_mode="approve"}`,
    'approval_policy="never"',
  ]
  const codex = await tryProgram(
    'codex',
    (name, input) => ({ name, namespace: 'mcp__threadbox', input }),
    [
      program('codex/node_modules/.bin/codex'),
      ...['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'],
      ...settings.flatMap(each => ['-c', each]),
      'Try it.',
    ],
    { CODEX_HOME: scratch },
  )
  isGood = claude && codex
} finally {
  server.kill()
  await server.exited
  await model.stop()
  rmSync(scratch, { recursive: true, force: true })
}
process.exit(isGood ? 0 : 1)
