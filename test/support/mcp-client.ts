import { afterAll } from 'bun:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { TestApp } from './app.ts'

export type McpClient = Awaited<ReturnType<ReturnType<typeof useMcp>>>

/** Connects the official client to the server of an app. All are closed after the file's tests. */
export function useMcp(app: TestApp) {
  const open: Client[] = []
  afterAll(async () => {
    for (const each of open) await each.close()
  })
  return async (key = app.key) => {
    const client = new Client({ name: 'test', version: '1' })
    const headers = { authorization: `Bearer ${key}` }
    const transport = new StreamableHTTPClientTransport(new URL('/v1/mcp', app.url), { requestInit: { headers } })
    // The package's own types differ where one says that a field may be undefined.
    await client.connect(transport as never)
    open.push(client)
    return Object.assign(client, {
      call: async (name: string, args: object = {}, options: object = {}): Promise<any> =>
        client.callTool({ name, arguments: { ...args } }, undefined, options),
    })
  }
}
