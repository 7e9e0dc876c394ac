// 10,000 webhooks to receivers that fail at random, with kill -9 of the server in between: `bun scripts/proofs/webhooks.ts`.
// 500 chats, each told to 20 webhooks. Says what was lost: nothing may be.
import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const WEBHOOKS = 20
const CHATS = 500
const KILLS = 5
const AT_ONCE = 8
const WITHIN_MS = 240_000

const executable = join(import.meta.dir, '../../dist/threadbox')
const directory = mkdtempSync(join(tmpdir(), 'threadbox-proof-'))
const key = `proof-${crypto.randomUUID()}`
/** Counts the accepted deliveries by webhook and run. */
const accepted = new Map<string, number>()
let tries = 0

const receiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const { data } = (await request.json()) as { data: { runId: string } }
    tries++
    const luck = Math.random()
    if (luck < 0.1) return new Response(null, { status: 500 })
    if (luck < 0.15) throw new Error('the connection ends without an answer')
    if (luck < 0.2) await Bun.sleep(200)
    const name = `${new URL(request.url).pathname} ${data.runId}`
    accepted.set(name, (accepted.get(name) ?? 0) + 1)
    return new Response()
  },
  error: () => new Response(null, { status: 503 }),
})

let server: Bun.Subprocess<'ignore', 'pipe', 'ignore'> | undefined
let url = ''
async function start(): Promise<void> {
  const flags = [
    '--data-dir',
    join(directory, 'data'),
    '--port',
    '0',
    '--webhook-private',
    '127.0.0.1',
    '--spares',
    '0',
  ]
  const child = Bun.spawn([executable, 'serve', ...flags], {
    env: { PATH: process.env.PATH ?? '', HOME: directory, THREADBOX_API_KEY: key },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  server = child
  let output = ''
  for await (const chunk of child.stdout) {
    output += new TextDecoder().decode(chunk)
    url = /^threadbox listening on (\S+)\n/m.exec(output)?.[1] ?? ''
    if (url) return
  }
  throw new Error(output)
}
const ask = (method: string, path: string, body?: object) =>
  fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })

await start()
for (let index = 0; index < WEBHOOKS; index++) {
  await ask('POST', '/v1/webhooks', { url: `${receiver.url}${index}`, events: ['run.ended'] })
}
const { id: sandboxId } = (await (await ask('POST', '/v1/sandboxes', { agent: 'echo' })).json()) as { id: string }
let done = 0
let kills = 0
const message = { messages: [{ role: 'user', parts: [{ type: 'text', text: 'a' }] }] }
const chat = async () => {
  while (done < CHATS) {
    const text = await ask('POST', '/v1/chat/echo', { sandboxId, ...message })
      .then(answer => (answer.ok ? answer.text() : ''))
      .catch(() => '')
    if (text.includes('"finish"')) done++
    else await Bun.sleep(50)
  }
}
const killing = (async () => {
  for (; kills < KILLS; kills++) {
    while (done < ((kills + 1) * CHATS) / (KILLS + 1)) await Bun.sleep(20)
    server?.kill('SIGKILL')
    await server?.exited
    await start()
  }
})()
const begunAt = performance.now()
await Promise.all([killing, ...Array.from({ length: AT_ONCE }, chat)])

const db = new Database(join(directory, 'data/threadbox.db'), { readonly: true })
const runs = db
  .query<{ id: string }, []>(`select data ->> '$.runId' as id from events where type = 'run.ended'`)
  .all()
  .map(({ id }) => id)
const lost = () =>
  runs
    .flatMap(id => Array.from({ length: WEBHOOKS }, (_, index) => `/${index} ${id}`))
    .filter(name => !accepted.has(name))
const deadline = performance.now() + WITHIN_MS
while (lost().length > 0 && performance.now() < deadline) await Bun.sleep(500)
const again = [...accepted.values()].filter(count => count > 1).length
console.log(`${runs.length} runs, of which ${done} were answered, x ${WEBHOOKS} webhooks = ${runs.length * WEBHOOKS}`)
console.log(
  `${accepted.size} delivered by ${tries} tries, ${again} of them more than once; ${KILLS} kills; lost: ${lost().length}`,
)
console.log(`${Math.round((performance.now() - begunAt) / 1000)} s`)
db.close()
const exit = lost().length > 0 || runs.length < done ? 1 : 0
await ask('DELETE', `/v1/sandboxes/${sandboxId}`)
server?.kill('SIGTERM')
await server?.exited
await receiver.stop(true)
rmSync(directory, { recursive: true, force: true })
process.exit(exit)
