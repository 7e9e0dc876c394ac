/**
 * Writes down which functions of an executable a server, a guest and a command use at their start, for the layout of the next
 * build's bytecode.
 *
 * usage: bun scripts/record-order.ts EXECUTABLE DIRECTORY
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** A program that does not end by itself on some machine must not hold up the build. */
const ENDS_WITHIN_MS = 60_000
/** A record without functions. */
const EMPTY = 'v2\n'

const [executable = '', directory = ''] = process.argv.slice(2).map(path => resolve(path))
mkdirSync(directory, { recursive: true })
const work = mkdtempSync(join(directory, 'recording.'))
try {
  await recordServer()
  // Without the socket that a server passes, a guest loads its code and ends.
  for (const name of ['guest', 'version']) await start(name, [name]).exited
  for (const name of ['serve', 'guest', 'version']) {
    // A program that had to be killed has written no record: its functions are laid out in their usual order.
    if (!existsSync(join(work, name))) writeFileSync(join(work, name), EMPTY)
    renameSync(join(work, name), join(directory, name))
  }
} finally {
  // A server that failed may have left a mount, whose files must not be removed.
  if (!readFileSync('/proc/self/mountinfo', 'utf8').includes(work)) rmSync(work, { recursive: true, force: true })
}

async function recordServer(): Promise<void> {
  const key = crypto.randomUUID()
  const server = start('serve', [
    'serve',
    '--host',
    '127.0.0.1',
    '--port',
    '0',
    '--data-dir',
    join(work, 'data'),
    '--api-key',
    key,
  ])
  let printed = ''
  const decoder = new TextDecoder()
  // A server that cannot run sandboxes here ends by itself, and has written its record.
  for await (const bytes of server.stdout) {
    printed += decoder.decode(bytes, { stream: true })
    const [, url] = /listening on (\S+)\n/.exec(printed) ?? []
    if (!url || !printed.includes('API keys')) continue
    await useSandbox(url, key)
    server.kill()
  }
  await server.exited
}

async function useSandbox(url: string, key: string): Promise<void> {
  const ask = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const answer = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    return await answer.text()
  }
  for (const path of ['/health', '/v1/me', '/v1/sandboxes']) await ask('GET', path)
  const { id } = JSON.parse(await ask('POST', '/v1/sandboxes', { agent: 'echo' }))
  if (typeof id !== 'string') return
  await ask('POST', `/v1/sandboxes/${id}/exec`, { command: 'true' })
  await ask('DELETE', `/v1/sandboxes/${id}`)
}

function start(name: string, args: string[]) {
  const env = { PATH: process.env.PATH, BUN_BYTECODE_ORDER_OUT: join(work, name) }
  return Bun.spawn([executable, ...args], { cwd: work, env, stdout: 'pipe', stderr: 'ignore', timeout: ENDS_WITHIN_MS })
}
