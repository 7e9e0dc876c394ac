/** An MCP server over HTTP, and by /sse over SSE, whose one tool says who called it. It keeps the requests. */
export function startMcpServer() {
  let answer: ((message: object) => void) | undefined
  const requests: { method: string; headers: Headers }[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(http) {
      if (new URL(http.url).pathname === '/sse' && http.method === 'GET') {
        const { response, send } = openEvents()
        answer = message => send('message', JSON.stringify(message))
        send('endpoint', '/sse')
        return response
      }
      if (http.method !== 'POST') return new Response(null, { status: 405 })
      const { id, method, params }: any = await http.json()
      requests.push({ method, headers: http.headers })
      if (id === undefined) return new Response(null, { status: 202 })
      const message = { jsonrpc: '2.0', id, result: resultOf(method, params) }
      if (!http.url.endsWith('/sse')) return Response.json(message)
      answer?.(message)
      return new Response(null, { status: 202 })
    },
  })
  const base = `http://127.0.0.1:${server.port}`
  return { requests, url: `${base}/mcp`, sseUrl: `${base}/sse`, stop: () => server.stop(true) }
}

function openEvents() {
  let send = (_event: string, _data: string) => {}
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      send = (event, data) => controller.enqueue(Buffer.from(`event: ${event}\ndata: ${data}\n\n`))
    },
  })
  return { send, response: new Response(body, { headers: { 'content-type': 'text/event-stream' } }) }
}

function resultOf(method: string, params: any): object {
  const serverInfo = { name: 'test', version: '1' }
  if (method === 'initialize') {
    return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo }
  }
  if (method === 'tools/list') return { tools: [{ name: 'hello', inputSchema: { type: 'object' } }] }
  return { content: [{ type: 'text', text: `hello ${params.arguments.name}` }] }
}
