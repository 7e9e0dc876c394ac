// The real harness of Claude Code, from npm, in sandboxes of this server, driven by Node from an empty project in which the packed
// package is installed: a session, one that attaches from another process, one that resumes what was stopped, and a second session.
// bun scripts/proofs/ai-sdk/main.ts (as root, with node and npm on the machine, which sandboxes use; takes some minutes, and the npm registry; builds first: scripts/build)
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import type { ModelRequest, ModelTurn } from '../../../test/support/model-server.ts'
import { startModelServer } from '../../../test/support/model-server.ts'
import { mirrors } from '../../../test/support/registries.ts'
import { makeAiSdkPackage } from '../../packages/npm.ts'
import { readRelease, root } from '../../packages/release.ts'
import { run } from '../../packages/run.ts'

const scratch = mkdtempSync('/var/tmp/threadbox-proof-')
const at = (path: string) => join(scratch, path)
const key = `proof-${crypto.randomUUID()}`

/** Runs what the prompt says, then repeats what came of it. */
function turn({ lastText, results, tools }: ModelRequest): ModelTurn {
  const [, command] = /RUN: (.*)/.exec(lastText) ?? []
  if (command === undefined || !tools.includes('Bash')) return { text: 'Hello from the fake model.' }
  if (results.length > 0) return { text: `It says: ${results.at(-1)}` }
  return { calls: [{ name: 'Bash', input: { command, description: 'What was asked for' } }] }
}
const model = startModelServer()
model.play(...Array.from({ length: 1000 }, () => turn))
const modelAt = new URL(model.access('anthropic').baseUrl).origin
// The model server listens at loopback, which a sandbox does not reach.
const address = Object.values(networkInterfaces())
  .flat()
  .find(each => each?.family === 'IPv4' && !each.internal)?.address
if (address === undefined) throw new Error('this machine has no address but loopback')
const relay = Bun.serve({
  hostname: address,
  port: 0,
  idleTimeout: 0,
  fetch: request => fetch(modelAt + new URL(request.url).pathname, request),
})

mkdirSync(at('agents'))
mkdirSync(at('project'))
const coder = {
  slug: 'coder',
  options: { networkAllowOut: ['0.0.0.0/0', '::/0'] },
  // A mirror of the registry may have a certificate of this machine's own.
  sandbox: {
    envs: { NODE_EXTRA_CA_CERTS: '/etc/ssl/certs/ca-certificates.crt' },
    setup: [
      'npm install --prefix /opt/pnpm --no-audit --no-fund pnpm@10 >&2',
      'ln -sf /opt/pnpm/node_modules/.bin/* /usr/local/bin/',
    ],
  },
}
writeFileSync(at('agents/coder.json'), JSON.stringify(coder))
const reach = [...mirrors, `${address}:${relay.port}`].join(',')
const flags = ['--data-dir', at('data'), '--port', '0', '--agents', at('agents'), '--network-private', reach]
const server = Bun.spawn([join(root, 'dist/threadbox'), 'serve', ...flags], {
  env: { PATH: process.env.PATH ?? '', HOME: '/root', THREADBOX_API_KEY: key },
  stdio: ['ignore', 'pipe', 'inherit'],
})

async function listening(): Promise<string> {
  let said = ''
  for await (const bytes of server.stdout) {
    said += new TextDecoder().decode(bytes)
    const [, found] = /^threadbox listening on (\S+)\n/m.exec(said) ?? []
    if (found) return found
  }
  throw new Error(`the server did not start: ${said}`)
}

try {
  const url = await listening()
  const release = await readRelease()
  const packed = await makeAiSdkPackage({ release, documents: { license: 'MIT', notices: '' }, output: scratch })
  const project = at('project')
  writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  copyFileSync(join(import.meta.dir, 'project.mjs'), join(project, 'project.mjs'))
  const wanted = [packed, '@ai-sdk/harness@1.0.122', '@ai-sdk/harness-claude-code@1.0.41', 'ws@8', 'node@24.9.0']
  await run(['npm', 'install', '--no-audit', '--no-fund', ...wanted], { cwd: project })
  for (const step of ['first', 'attach', 'resume', 'other']) {
    const child = Bun.spawn([join(project, 'node_modules/.bin/node'), 'project.mjs', step], {
      cwd: project,
      env: { PATH: process.env.PATH ?? '', HOME: scratch, BASE_URL: url, API_KEY: key, MODEL_URL: relay.url.origin },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    if ((await child.exited) !== 0) throw new Error(`the step ${step} failed`)
  }
  const answer = await fetch(`${url}/v1/sandboxes`, { headers: { authorization: `Bearer ${key}` } })
  const { sandboxes } = (await answer.json()) as { sandboxes: unknown[] }
  console.log(`sandboxes left: ${sandboxes.length}`)
} finally {
  server.kill()
  await server.exited
  await relay.stop(true)
  await model.stop()
  rmSync(scratch, { recursive: true })
}
