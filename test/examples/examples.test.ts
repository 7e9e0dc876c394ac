import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, patiently, type Server, startServer, temporaryDirectory } from '../support/server.ts'

patiently()

const root = join(import.meta.dir, '../..')
const examples = join(root, 'examples')
const plugin = join(examples, 'engine-plugin/count.ts')

let directory = ''
let server: Server
beforeAll(async () => {
  directory = temporaryDirectory()
  server = await startServer({ flags: ['--plugin', plugin, '--agents', join(examples, 'engine-plugin/agents')] })
})
afterAll(async () => {
  await server.close()
  rmSync(directory, { recursive: true })
})

/** The stdout of a program that must succeed, with the server in its environment. */
async function run(words: string[], cwd: string): Promise<string> {
  const env = { ...process.env, THREADBOX_URL: server.url, THREADBOX_API_KEY: server.key }
  const child = Bun.spawn(words, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (code !== 0) throw new Error(`${words.join(' ')}: ${stdout}${stderr}`)
  return stdout
}

test('each example has a README of about ten lines', () => {
  for (const name of readdirSync(examples)) {
    const lines = readFileSync(join(examples, name, 'README.md'), 'utf8')
      .trimEnd()
      .split('\n')
    expect([name, lines.length <= 20]).toEqual([name, true])
  }
})

test('the script in Node works', async () => {
  const shown = await run(['node', 'run.mjs'], join(examples, 'node-script'))
  expect(shown).toBe('sorted: 1 2 3\nHello from Node\n')
})

test('the script in Python works', async () => {
  const shown = await run(['python3', 'run.py'], join(examples, 'python-script'))
  expect(shown).toBe('sorted: 1 2 3\nHello from Python\n')
})

test('the engine keeps the contract, and answers', async () => {
  const { code, stdout } = await command(['plugin', 'test', plugin], { env: { TMPDIR: directory } })
  expect([code, stdout]).toEqual([0, expect.stringMatching(/\n[1-9]\d* passed, 0 failed\n$/)])
  const { stdout: reply } = await command(['chat', 'counter', 'one two three', '--url', server.url], {
    env: { THREADBOX_API_KEY: server.key },
  })
  expect(reply).toBe('3 words\n')
})

test('the backend keeps the contract, and no more sandboxes than it is told', async () => {
  const file = join(examples, 'backend-plugin/few-jails.ts')
  const { code, stdout } = await command(['plugin', 'test', file], { env: { TMPDIR: directory } })
  expect([code, stdout]).toEqual([0, expect.stringMatching(/\n[1-9]\d* passed, 0 failed\n$/)])
  await using few = await startServer({ flags: ['--plugin', file, '--backend', 'few-jails'], env: { FEW_JAILS: '1' } })
  const id = await few.sandbox()
  const refused = await few.ask('POST', '/v1/sandboxes', { agent: 'echo' })
  expect([refused.status, refused.body.message]).toEqual([409, 'There are 1 sandboxes: delete one first.'])
  expect((await few.ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
  expect((await few.ask('POST', '/v1/sandboxes', { agent: 'echo' })).status).toBe(201)
}, 120_000)

test('the CI job is the recipe that docs/ci.md has', async () => {
  const [, recipe] =
    /```sh\n(# The branch is tested[\s\S]*?)```\n/.exec(await Bun.file(join(root, 'docs/ci.md')).text()) ?? []
  expect(await Bun.file(join(examples, 'ci-job/job.sh')).text()).toBe(`#!/bin/sh\n${recipe}`)
})

test('the page chats with a token of its own server, in one sandbox', async () => {
  // Its packages come from this repository, as `npm i` would bring them.
  const cwd = join(directory, 'use-chat')
  cpSync(join(examples, 'use-chat'), cwd, { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(cwd, 'node_modules'))
  const env = { ...process.env, THREADBOX_URL: server.url, THREADBOX_API_KEY: server.key, PORT: '0' }
  const page = Bun.spawn([process.execPath, 'server.ts'], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const { value } = await page.stdout.getReader().read()
    const [, origin = ''] = /open (http\S+)/.exec(Buffer.from(value ?? []).toString()) ?? []
    const driver = [process.execPath, join(import.meta.dir, 'use-chat-page.ts'), origin]
    expect(JSON.parse(await run(driver, directory))).toEqual({
      articles: ['user: first words', 'assistant: first words', expect.stringMatching(/^user: \$ echo/), 'assistant: '],
      alert: null,
    })
  } finally {
    page.kill()
    await page.exited
  }
  const { body } = await server.ask('GET', '/v1/sandboxes')
  expect(body.sandboxes.filter(({ agent }: any) => agent.slug === 'echo')).toHaveLength(1)
})

test('the pages, their servers and the engine have types', async () => {
  const { stdout } = await command(['plugin', 'types'])
  writeFileSync(join(directory, 'threadbox.d.ts'), stdout)
  cpSync(plugin, join(directory, 'count.ts'))
  cpSync(join(import.meta.dir, 'use-chat-page.ts'), join(directory, 'use-chat-page.ts'))
  const pages = ['use-chat', 'approvals', 'browser-tool']
  for (const name of pages) cpSync(join(examples, name), join(directory, 'typed', name), { recursive: true })
  writeFileSync(
    join(directory, 'html.d.ts'),
    "declare module '*.html' {\n  const page: Bun.HTMLBundle\n  export default page\n}\n",
  )
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  const compilerOptions = {
    ...{ strict: true, noEmit: true, target: 'esnext', module: 'preserve', jsx: 'react-jsx', skipLibCheck: true },
    ...{ lib: ['esnext', 'dom', 'dom.iterable'], types: ['bun-types'] },
  }
  const include = ['*.ts', 'typed/*/*.ts', 'typed/*/*.tsx']
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }))
  expect(await run([process.execPath, join(root, 'node_modules/typescript/bin/tsc'), '-p', directory], directory)).toBe(
    '',
  )
})
