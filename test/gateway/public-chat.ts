import type { TestApp } from '../support/app.ts'
import { readChunks } from '../support/sse.ts'

export { say } from '../support/chat.ts'

/** What an agent's reply to a message comes to. */
export async function chunksOf(app: TestApp, agent: string, message: object): Promise<any[]> {
  const response = await app.request('POST', `/v1/chat/${agent}`, { body: { messages: [message] } })
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  return await readChunks(response)
}
