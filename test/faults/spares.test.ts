import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { leftovers } from '../support/leftovers.ts'
import { startServer, useServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { dice, seed } from './random.ts'

const SPARES = 3
const server = useServer({ flags: ['--spares', `${SPARES}`, '--log-level', 'debug'] })
const roll = dice(seed)
const kills = Number(process.env.THREADBOX_TEST_KILLS ?? 12)

const environments = () => readdirSync(join(server.dataDirectory, 'sandboxes'))

const stood = () => [...server.stderr.matchAll(/(\S+) stands ready as a spare/g)].map(([, id = '']) => id)

/** Those that nobody has taken, or given back. */
const standing = () => {
  const there = environments()
  return stood().filter(id => there.includes(id))
}

/** The sandboxes that the server knows, by their environments. */
async function known(): Promise<Map<string, string>> {
  const { body } = await server.ask('GET', '/v1/sandboxes?limit=200')
  return new Map(body.sandboxes.map(({ id, sandboxId }: Record<string, string>) => [sandboxId, id]))
}

/** All that is in a sandbox and that a create or its user put there. */
const look =
  "cat /home/user/secret* /tmp/secret* 2>/dev/null; env | grep '^SECRET'; ls /home/user /tmp; ps -e -o args= | grep '[s]leep'"

let secrets = 0

/** Makes a sandbox with a secret of its own, and looks that it has no other. */
async function createAndUse(): Promise<{ id: string; sandboxId: string } | undefined> {
  const secret = `secret-${seed}-${++secrets}`
  const { status, body } = await server.ask('POST', '/v1/sandboxes', {
    agent: 'echo',
    envs: { SECRET: secret },
    files: { '/home/user/secret': secret },
  })
  expect(status).toBe(201)
  const seen = await server.exec(body.id, look)
  expect(seen.stdout.replaceAll(secret, 'own')).toBe('ownSECRET=own\n/home/user:\nsecret\n\n/tmp:\n')
  await server.exec(body.id, `echo ${secret} >/tmp/secret; (sleep 1000 &)`)
  return body
}

/** Some of them before anything is ready. */
const moments = Array.from({ length: kills }, (_, index) => ({
  ms: roll(300),
  when: index % 4 ? 'a spare is ready' : 'the start',
}))

describe.each(moments)(`killed $ms ms after $when (seed ${seed})`, ({ ms, when }) => {
  test('of making and giving spares: each is given once, with nothing of another in it, and none is left', async () => {
    const made: { id: string; sandboxId: string }[] = []
    let isKilled = false
    const use = async () => {
      while (!isKilled) {
        const one = await createAndUse().catch(error => {
          if (!isKilled) throw error
        })
        if (one) made.push(one)
        await Bun.sleep(roll(100))
      }
    }
    if (when !== 'the start') await until(() => stood().length > 0)
    const working = [use(), use()]
    await Bun.sleep(ms)
    const begun = environments()
    isKilled = true
    await server.kill()
    await Promise.all(working)
    await server.start()

    const kept = await known()
    expect(new Set(made.map(({ sandboxId }) => sandboxId)).size).toBe(made.length)
    for (const { sandboxId } of made) expect([...kept.keys()]).toContain(sandboxId)
    const orphans = begun.filter(id => !kept.has(id))
    await until(async () => (await leftovers(...orphans)).length === 0)
    await until(() => environments().every(id => kept.has(id) || stood().includes(id) || !begun.includes(id)))
    for (const id of stood()) expect(orphans).not.toContain(id)
    for (const id of kept.values()) {
      const { stdout } = await server.exec(id, 'cat /home/user/secret')
      expect(stdout).toStartWith(`secret-${seed}-`)
      expect((await server.ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
    }
  })
})

test('a create takes a spare that stands ready', async () => {
  await until(async () => {
    await until(() => stood().length > 0)
    const made = await createAndUse()
    return stood().includes(made?.sandboxId ?? '')
  })
  for (const id of (await known()).values())
    expect((await server.ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
})

test('a server that is stopped leaves no spare', async () => {
  await until(() => standing().length >= SPARES)
  const begun = environments()
  expect(begun.length).toBeGreaterThanOrEqual(SPARES)
  expect(await server.stop()).toBe(0)
  expect(environments()).toEqual([])
  expect(await leftovers(...begun)).toEqual([])
  await server.start()
})

test('a server that is stopped as soon as it listens has removed the spares of a killed one', async () => {
  await until(() => standing().length >= SPARES)
  await server.kill()
  const begun = environments()
  expect(begun.length).toBeGreaterThanOrEqual(SPARES)
  await server.start()
  expect(await server.stop()).toBe(0)
  expect(environments()).toEqual([])
  expect(await leftovers(...begun)).toEqual([])
  await server.start()
})

test('a server that starts has a spare for what was asked for last', async () => {
  await using other = await startServer({ flags: ['--log-level', 'debug', '--memory-mb', '300'] })
  const ready = () => /(\S+) stands ready/.exec(other.stderr)?.[1]
  await until(() => ready() !== undefined)
  const { body } = await other.ask('POST', '/v1/sandboxes', { agent: 'echo' })
  expect(body.sandboxId).toBe(ready())
})

test('with none wanted there is none', async () => {
  await using other = await startServer({ flags: ['--spares', '0', '--log-level', 'debug'] })
  const id = await other.sandbox()
  await other.exec(id, 'sleep 0.5')
  expect(readdirSync(join(other.dataDirectory, 'sandboxes')).length).toBe(1)
  expect(other.stderr).not.toContain('spare')
})

test('a spare is not idle, however long it waits', async () => {
  await using server = await startServer({ flags: ['--idle-ms', '300', '--log-level', 'debug'] })
  const ready = () => [...server.stderr.matchAll(/(\S+) stands ready/g)].map(([, id]) => id)
  const count = (pattern: RegExp) => [...server.stderr.matchAll(pattern)].length
  await until(() => ready().length === 1)
  const id = await server.sandbox()
  await until(() => ready().length === 2)
  for (const times of [1, 2]) {
    await server.exec(id, 'true')
    await until(() => count(/was idle and is paused/g) === times)
  }
  const { body } = await server.ask('POST', '/v1/sandboxes', { agent: 'echo' })
  expect(body.sandboxId).toBe(ready()[1])
})
