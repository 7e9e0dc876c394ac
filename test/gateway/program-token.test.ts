import { expect, test } from 'bun:test'
import { cleanUpAfterEach } from '../runs/support.ts'
import { call, gatewayScene, wireCases } from './support.ts'

cleanUpAfterEach()

const [anthropic] = wireCases as [(typeof wireCases)[0]]

for (const wire of wireCases) {
  test(`${wire.wire}: a call under a program's token gets the run's model, whatever it names, and is metered as that`, async () => {
    const { open, upstream, calls } = gatewayScene()
    const session = open({ model: wire.model })
    const id = wire.model.replace(/^\w+\//, '')
    const other = {
      ...wire,
      ...(wire.streamPath !== undefined && { streamPath: wire.streamPath.replace(id, 'a-small-model') }),
      body: (text: string) => ({ ...wire.body(text), ...(wire.wire !== 'gemini' && { model: 'a-small-model' }) }),
    }
    const access = { ...session.access, token: session.access.programToken }
    const answer = await call({ ...session, access }, other, 'hi')
    expect(answer.status).toBe(200)
    await answer.text()
    const [seen] = upstream.seen
    if (wire.wire === 'gemini') expect(seen?.path).toContain(`/${id}:`)
    else expect(seen?.body.model).toBe(id)
    expect(calls()).toMatchObject([{ model: id }])
  })
}

test("a thread's runs have one program's token, and others another", () => {
  const { open } = gatewayScene()
  const token = (threadId: string) => open({ threadId }).access.programToken
  const [first, again, other] = [token('thr_1'), token('thr_1'), token('thr_2')]
  expect([again === first, other === first]).toEqual([true, false])
})

test('a program that lives on is refused between the runs of its thread, and let through in the next', async () => {
  const { open } = gatewayScene()
  const ask = async (session: ReturnType<typeof open>) => {
    const access = { ...session.access, token: session.access.programToken }
    const answer = await call({ ...session, access }, anthropic, 'hi')
    await answer.text()
    return answer.status
  }
  const first = open()
  expect(await ask(first)).toBe(200)
  await first.close()
  expect(await ask(first)).toBe(401)
  const second = open()
  expect(await ask(first)).toBe(200)
  // The end of an old run is not the end of a new one.
  await first.close()
  expect(await ask(second)).toBe(200)
})
