import { expect, test } from 'bun:test'
import { acp } from '../../../plugins/agent-programs/index.ts'
import { useApp } from '../../support/app.ts'
import { readChunks } from '../../support/sse.ts'

const app = useApp([], {}, () => [acp])

/** Asks without end, by long names, and reads no answer. */
const asking = `
import json, sys
sys.stdin.readline()
line = json.dumps({'jsonrpc': '2.0', 'id': 'x' * 1000000, 'method': 'none'}) + '\\n'
while True: sys.stdout.write(line)
`

test('a program that asks and reads no answer is ended, whatever waits for it: regression', async () => {
  const options = { acp: { command: 'python3', args: ['/asking.py'] } }
  app.agent('asking', { files: { '/asking.py': asking } }, { engine: 'acp', options })
  const messages = [{ role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }]
  const chunks = await readChunks(await app.request('POST', '/v1/chat/asking', { body: { messages } }))
  const error = chunks.find(({ type }) => type === 'error')
  expect(error?.errorText).toContain('it does not read its input fast enough')
}, 60_000)
