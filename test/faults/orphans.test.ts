import { describe, expect, test } from 'bun:test'
import { globSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { tracesOf } from '../support/leftovers.ts'
import { useServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { dice, seed } from './random.ts'

const server = useServer({ flags: ['--spares', '0'] })
const roll = dice(seed)

const environments = () => readdirSync(join(server.dataDirectory, 'sandboxes'))

/** The sandboxes that the server knows, by their environments. */
async function known(): Promise<string[]> {
  const { body } = await server.ask('GET', '/v1/sandboxes')
  return body.sandboxes.map(({ sandboxId }: { sandboxId: string }) => sandboxId)
}

async function strays(): Promise<string[]> {
  const mine = await known()
  return environments().filter(id => !mine.includes(id))
}

/** The sweep goes on after the server listens. */
const gone = (...environmentIds: string[]) => until(() => tracesOf(...environmentIds).length === 0)

const stages = () => globSync('/run/threadbox/*')
const stagesBefore = stages()

const moments = Array.from({ length: 10 }, () => ({ ms: roll(80) }))

describe.each(moments)(`killed after $ms ms (seed ${seed})`, ({ ms }) => {
  test('of making a sandbox: it is whole, or nothing of it is left', async () => {
    const before = await known()
    const making = server.sandbox({ setup: ['sleep 0.02'] }).catch(() => undefined)
    await Bun.sleep(ms)
    await server.kill()
    const made = await making
    const begun = environments().filter(id => !before.includes(id))
    await server.start()
    await until(async () => (await strays()).length === 0)
    const after = await known()
    await gone(...begun.filter(id => !after.includes(id)))
    if (made) expect((await server.exec(made, 'echo whole')).stdout).toBe('whole\n')
  })

  test('of deleting a sandbox: it is gone, or whole', async () => {
    const sandboxId = await server.sandbox()
    const { body } = await server.ask('GET', `/v1/sandboxes/${sandboxId}`)
    const deleting = server.ask('DELETE', `/v1/sandboxes/${sandboxId}`).catch(() => undefined)
    await Bun.sleep(ms / 4)
    await server.kill()
    const answer = await deleting
    await server.start()
    await until(async () => (await strays()).length === 0)
    if ((await known()).includes(body.sandboxId)) {
      expect(answer).toBeUndefined()
      expect((await server.exec(sandboxId, 'echo whole')).stdout).toBe('whole\n')
    } else {
      await gone(body.sandboxId)
    }
  })
})

test('what a killed server was mounting is not left mounted', async () => {
  await server.stop()
  const begun = stages().filter(path => !stagesBefore.includes(path))
  await until(() => stages().every(path => !begun.includes(path)))
  await server.start()
  expect(readdirSync(join(server.dataDirectory, 'trash'))).toEqual([])
})
