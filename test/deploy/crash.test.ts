import { expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { bundleOf, deployForm, noTools } from '../support/bundle.ts'
import { codeOf } from '../support/client.ts'
import { type Server, useServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const server = useServer({ flags: ['--spares', '0'] })
const bundles = (): string[] => {
  const directory = join(server.dataDirectory, 'bundles')
  return existsSync(directory) ? readdirSync(directory) : []
}
const environments = () => readdirSync(join(server.dataDirectory, 'sandboxes'))
const isAbsent = async (slug: string) => codeOf(await server.ask('GET', `/v1/agents/${slug}`)) === '404 agent_not_found'

/** A form whose file never ends. */
function endless(): { body: ReadableStream<Uint8Array>; headers: Record<string, string> } {
  const head = '--x\r\ncontent-disposition: form-data; name="bundle"; filename="b.js"\r\n\r\n'
  const body = new ReadableStream<Uint8Array>({
    start: controller => controller.enqueue(Buffer.from(head)),
    async pull(controller) {
      await Bun.sleep(5)
      controller.enqueue(Buffer.from('x'.repeat(1000)))
    },
  })
  return { body, headers: { 'content-type': 'multipart/form-data; boundary=x' } }
}
const hanging = { slug: 'hanging', bundle: bundleOf('await new Promise(() => {}); export default { tools: {} }') }
const upload = (aborted: AbortSignal, of: Server = server) =>
  of.request('POST', '/v1/agents/deploy', { ...endless(), signal: aborted }).catch(() => {})

test('a client that goes away in the middle of its upload leaves nothing', async () => {
  const abort = new AbortController()
  const uploading = upload(abort.signal)
  await until(() => bundles().some(name => name.startsWith('upload-')))
  abort.abort()
  await uploading
  await until(() => bundles().length === 0)
})

test('a client that goes away while its bundle is loaded leaves nothing', async () => {
  const response = await server.request('POST', '/v1/agents/deploy', { body: deployForm(hanging) })
  const reader = response.body!.getReader()
  await reader.read()
  await until(() => environments().length === 1)
  await reader.cancel()
  await until(() => environments().length === 0 && bundles().length === 0)
  expect(await isAbsent('hanging')).toBe(true)
})

test('kill -9 in the middle of an upload, or of the loading, leaves nothing after the next start', async () => {
  const uploading = upload(new AbortController().signal)
  const loading = await server.request('POST', '/v1/agents/deploy', { body: deployForm(hanging) })
  await until(() => bundles().length === 2 && environments().length === 1)
  await server.kill()
  await uploading
  await loading.text().catch(() => {})
  expect(bundles()).toHaveLength(2)
  await server.start()
  await until(() => environments().length === 0 && bundles().length === 0)
  expect(await isAbsent('hanging')).toBe(true)
})

test('a version is there after kill -9, with what it brought', async () => {
  const response = await server.request('POST', '/v1/agents/deploy', {
    body: deployForm({ slug: 'kept', bundle: noTools }),
  })
  expect(await response.text()).toContain('"version":1')
  await server.kill()
  await server.start()
  expect((await server.ask('GET', '/v1/agents/kept')).body.activeVersion).toBe(1)
  expect(bundles()).toHaveLength(1)
  await server.ask('DELETE', '/v1/agents/kept')
  expect(bundles()).toEqual([])
})
