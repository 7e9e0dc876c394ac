import { expect, test } from 'bun:test'
import type { Engine } from '../../src/plugin-api/index.ts'
import { useApp } from '../support/app.ts'
import { say, threadOf } from '../support/chat.ts'
import { until } from '../support/until.ts'

const mediaTypes = ['image/png', 'text/html', 'image/png,<script>', 'image/svg+xml', 'image/', 'IMAGE/GIF']
const urls = [
  'https://a.example/b',
  'http://a.example',
  'javascript:alert(1)',
  ' javascript:x',
  'data:text/html,x',
  'a',
]
/** Has fetched these pages and got these images, as a program in the sandbox may say. */
const showing: Engine = {
  name: 'showing',
  async *run() {
    for (const [index, url] of urls.entries()) {
      yield { type: 'tool-call', callId: `page${index}`, name: 'WebFetch', input: { url } }
      yield { type: 'tool-result', callId: `page${index}`, output: 'a page' }
    }
    yield { type: 'tool-call', callId: 'images', name: 'Look', input: {} }
    yield {
      type: 'tool-result',
      callId: 'images',
      output: mediaTypes.map(mediaType => ({ type: 'image', mediaType, data: 'AA==' })),
    }
    return { status: 'completed' }
  },
}
const app = useApp([], {}, () => [{ name: 'showing', engine: () => showing }])

test('a source is a page of the web, and a file of a tool an image, whatever a program says: regression', async () => {
  app.agent('showing', {}, { engine: 'showing' })
  const { status, body } = await app.ask('POST', '/v1/chat/showing', { mode: 'background', messages: [say('show')] })
  expect(status).toBe(202)
  await until(async () => (await threadOf(app, body)).status === 'completed')
  const { parts } = (await threadOf(app, body)).messages.at(-1)
  const shown = parts.flatMap(({ type, url }: any) => (type === 'file' || type === 'source-url' ? [url] : []))
  expect(shown).toEqual([
    ...['https://a.example/b', 'http://a.example'],
    ...['image/png', 'image/svg+xml', 'IMAGE/GIF'].map(type => `data:${type};base64,AA==`),
  ])
})
