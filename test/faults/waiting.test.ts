import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Server, temporaryDirectory } from '../support/server.ts'
import { until } from '../support/until.ts'
import { dice, seed } from './random.ts'

const KILLS = Number(process.env.THREADBOX_TEST_KILLS ?? 12)
const directory = temporaryDirectory()
const agents = join(directory, 'agents')
mkdirSync(agents)
writeFileSync(join(agents, 'asking.json'), JSON.stringify({ slug: 'asking', engine: 'asking' }))
const plugin = join(import.meta.dir, '../support/asking-engine.ts')
const server = new Server({ flags: ['--plugin', plugin, '--agents', agents, '--spares', '0'] })
let sandboxId = ''
beforeAll(async () => {
  await server.start()
  sandboxId = await server.sandbox({ agent: 'asking' })
  console.log(`seed ${seed}: THREADBOX_TEST_SEED=${seed} bun test test/faults/waiting.test.ts`)
}, 60_000)
afterAll(async () => {
  await server.close()
  rmSync(directory, { recursive: true })
}, 60_000)

const stopped = 'The server stopped during this reply.'
const tools = { pick: { description: 'Lets the user pick.', inputSchema: { type: 'object' } } }
const pathOf = (threadId: string) => `/v1/sandboxes/${sandboxId}/threads/${threadId}`

interface Seen {
  /** Of the server's answers. */
  approvals: Map<string, string>
}

/** Answers what a thread asks, in an order of chance: what is to be run is approved, the rest denied. */
async function answerAll(threadId: string, roll: (most: number) => number, seen: Seen): Promise<void> {
  const { body } = await server.ask('GET', `/v1/approvals?threadId=${threadId}&status=pending`)
  const work = body.approvals.map(({ id, input }: any) => async () => {
    const answer = await server.ask('POST', `/v1/approvals/${id}`, { approved: input.command.includes('good') })
    if (answer.status === 200) seen.approvals.set(id, answer.body.status)
  })
  for (const { id } of body.approvals) if (!seen.approvals.has(id)) seen.approvals.set(id, 'pending')
  const thread = await server.ask('GET', pathOf(threadId))
  for (const { toolCallId, state, type } of thread.body.messages.at(-1)?.parts ?? []) {
    if (type === 'tool-pick' && state === 'input-available')
      work.push(() => server.ask('POST', `${pathOf(threadId)}/tool-results`, { toolCallId, output: 'red' }))
  }
  while (work.length > 0) await work.splice(roll(work.length) - 1, 1)[0]?.()
}

const statusOf = async (threadId: string) => (await server.ask('GET', pathOf(threadId))).body.status

/** Asks and answers until the thread's reply is over. */
async function play(threadId: string, text: string | undefined, roll: (most: number) => number, seen: Seen) {
  if (text !== undefined) {
    const messages = [{ role: 'user', parts: [{ type: 'text', text }] }]
    await server.ask('POST', '/v1/chat/asking', { sandboxId, threadId, messages, tools, mode: 'background' })
  }
  for (;;) {
    const status = await statusOf(threadId)
    if (status === 'waiting') await answerAll(threadId, roll, seen)
    else if (status !== 'streaming') return status
    await Bun.sleep(1)
  }
}

test(`nothing that waits is lost or done twice over ${KILLS} kills`, async () => {
  const roll = dice(seed)
  const counts = { completed: 0, error: 0, runs: 0, restarted: 0 }
  for (let kill = 1; kill <= KILLS; kill++) {
    const { body } = await server.ask('POST', `/v1/sandboxes/${sandboxId}/threads`, {})
    const threadId: string = body.id
    const step = (name: string) => `ask echo ${name}-${kill} >> /tmp/ran`
    const text = [step('good-a'), step('bad-b'), 'pick color', 'then', step('good-c'), 'then', 'say done'].join('\n')
    const seen: Seen = { approvals: new Map() }
    const playing = play(threadId, text, roll, seen).catch(() => 'lost')
    await Bun.sleep(roll(120))
    await server.kill()
    await playing
    await server.start()
    // A run that a kill has interrupted for good leaves the thread with an error; what waits goes on by itself.
    for (const [id, status] of seen.approvals) {
      const approval = (await server.ask('GET', `/v1/approvals/${id}`)).body
      if (status !== 'pending') expect([id, approval.status]).toEqual([id, status])
    }
    const before = await server.ask('GET', pathOf(threadId))
    const isBegun = before.body.messages.length > 0
    const open = (await server.ask('GET', `/v1/approvals?threadId=${threadId}&status=pending`)).body.approvals
    // What was answered before the kill goes on without anybody.
    if (open.length === 0 && ['streaming', 'waiting'].includes(before.body.status)) counts.restarted += 1
    const status = await play(threadId, undefined, roll, seen)
    if (isBegun) expect(['completed', 'error']).toContain(status)
    if (status === 'completed') counts.completed += 1
    else counts.error += 1
    const { approvals } = (await server.ask('GET', `/v1/approvals?threadId=${threadId}`)).body
    for (const approval of approvals) {
      const isMeant = approval.input.command.includes('good')
      // A run that fails for good takes back what it asks.
      expect([isMeant ? 'approved' : 'denied', 'cancelled']).toContain(approval.status)
      if (status === 'completed') expect(approval.status).not.toBe('cancelled')
    }
    const lines = (await server.exec(sandboxId, 'cat /tmp/ran 2>/dev/null; true')).stdout.split('\n')
    const ran = (name: string) => lines.filter(line => line === `${name}-${kill}`).length
    expect({ kill, bad: ran('bad-b') }).toEqual({ kill, bad: 0 })
    const { messages } = (await server.ask('GET', pathOf(threadId))).body
    for (const name of ['good-a', 'good-c']) {
      const part = messages
        .flatMap(({ parts }: any) => parts)
        .find(({ input }: any) => input?.command?.includes(`${name}-${kill}`))
      const count = ran(name)
      counts.runs += count
      expect({ kill, name, isOnce: count <= 1 }).toEqual({ kill, name, isOnce: true })
      // An approved call has run, unless the server stopped while it did.
      if (part?.state === 'output-available') expect({ kill, name, count }).toEqual({ kill, name, count: 1 })
      else if (part) expect({ kill, name, ...part }).toMatchObject({ kill, name, errorText: stopped })
    }
  }
  console.log(counts)
  expect(counts.completed).toBeGreaterThan(0)
  expect(counts.runs).toBeGreaterThan(0)
  await until(async () => (await server.ask('GET', '/v1/approvals?status=pending')).body.approvals.length === 0)
}, 600_000)
