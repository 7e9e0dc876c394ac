import { expect, test } from 'bun:test'
import { patiently, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

patiently()

test('a server that is killed over an upload leaves the file as it was, and nothing beside it', async () => {
  await using server = await startServer()
  const sandboxId = await server.sandbox()
  const shell = async (command: string) =>
    (await server.ask('POST', `/v1/sandboxes/${sandboxId}/exec`, { command })).body.stdout
  await shell('mkdir -p /srv/up; echo whole >/srv/up/file')
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      controller.enqueue(new Uint8Array(64 * 1024))
      await Bun.sleep(1)
    },
  })
  const upload = fetch(`${server.url}/v1/sandboxes/${sandboxId}/files?path=/srv/up/file&format=stream`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.key}` },
    body,
  }).catch(() => 'lost')
  await until(async () => Number(await shell('cat /srv/up/.*draft* | wc -c')) > 200_000)
  await server.kill()
  expect(await upload).toBe('lost')
  await server.start()
  await until(async () => (await shell('cat /srv/up/file; ls -A /srv/up')) === 'whole\nfile\n')
})
