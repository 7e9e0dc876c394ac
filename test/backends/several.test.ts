import { afterAll, beforeAll, expect, test } from 'bun:test'
import { importBusybox } from '../support/docker-images.ts'
import { useDockerd } from '../support/dockerd.ts'
import { patiently, Server } from '../support/server.ts'

patiently()

// Before the engine goes.
afterAll(() => server.close())
const dockerd = useDockerd()
const flags = ['--backends', 'nsjail,docker', '--docker-image', 'busybox', '--spares', '0']
const server = new Server({ flags, env: { DOCKER_HOST: dockerd.host } })
beforeAll(async () => {
  await importBusybox(dockerd.api)
  await server.start()
}, 300_000)

test('a server with jails and containers has sandboxes of both, also after a restart', async () => {
  const make = async (fields: object) =>
    (await server.ask('POST', '/v1/sandboxes', { agent: 'echo', ...fields })).body.id as string
  const ids = [await make({}), await make({ isolation: 'container' })]
  const seen = async () => {
    const { sandboxes } = (await server.ask('GET', '/v1/sandboxes')).body
    return ids.map(id => {
      const { provider, isolation } = sandboxes.find((each: { id: string }) => each.id === id)
      return [provider, isolation.kind]
    })
  }
  const expected = [
    ['nsjail', 'namespaces'],
    ['docker', 'container'],
  ]
  expect(await seen()).toEqual(expected)
  for (const id of ids) expect((await server.exec(id, 'echo kept >f; echo $?')).stdout).toBe('0\n')
  await server.stop()
  await server.start()
  expect(await seen()).toEqual(expected)
  for (const id of ids) expect((await server.exec(id, 'cat f')).stdout).toBe('kept\n')
  for (const id of ids) expect((await server.ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
  expect(await dockerd.api.containers()).toEqual([])
})
