import { createMCPClient, type MCPClient, type MCPClientConfig, validateJSONRPCMessage } from '@ai-sdk/mcp'
import { type JSONSchema7, jsonSchema } from 'ai'
import { settlesWithin } from '../../../src/async/timeout.ts'
import { messageOf } from '../../../src/errors.ts'
import type { EngineContext, EngineEvent, McpServer } from '../../../src/plugin-api/index.ts'
import { EVENT_BYTES, partsOf } from '../../../src/read/bytes.ts'
import { checkNesting } from '../../../src/read/nesting.ts'
import type { Tool } from '../tools/tool.ts'
import { toOutput } from './content.ts'
import { createStdioTransport } from './stdio.ts'

const START_TIMEOUT_MS = 30_000
const CALL_TIMEOUT_MS = 600_000
const CLOSE_TIMEOUT_MS = 500
/** The most of one HTTP answer. An SSE server has one answer for the whole turn. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

export interface McpTools {
  tools: Tool[]
  /** One for each server that could not be used. */
  notices: EngineEvent[]
  /** When it resolves, no server of the turn is alive in the sandbox. Never rejects. */
  close(): Promise<void>
}

/** Starts the turn's servers side by side. Never throws: a server that fails becomes a notice, and the turn goes on without it. */
export async function openMcpServers(context: EngineContext): Promise<McpTools> {
  const opened = await Promise.all(
    Object.entries(context.options.mcpServers ?? {}).map(([name, server]) => openServer(name, server, context)),
  )
  return {
    tools: opened.flatMap(({ tools }) => tools),
    notices: opened.flatMap(({ notices }) => notices),
    close: async () => void (await Promise.allSettled(opened.map(({ close }) => close()))),
  }
}

async function openServer(name: string, server: McpServer, context: EngineContext): Promise<McpTools> {
  const broken = new AbortController()
  const transport = createTransport(server, context, error => broken.abort(error))
  let client: MCPClient | undefined
  const close = async () => {
    if (client) await settlesWithin(CLOSE_TIMEOUT_MS, client.close())
    // The client may be missing, or late to close: the process must end anyway.
    if ('start' in transport) await transport.close()
  }
  try {
    const signal = AbortSignal.any([context.signal, broken.signal, AbortSignal.timeout(START_TIMEOUT_MS)])
    client = await createMCPClient({
      transport,
      clientName: 'threadbox',
      protocolVersionDiscovery: false,
      initializationOptions: { signal, timeout: START_TIMEOUT_MS },
      onUncaughtError: () => {},
    })
    return { tools: await listTools(name, client, signal), notices: [], close }
  } catch (error) {
    await close().catch(() => {})
    const text = `The MCP server ${name} could not be started: ${messageOf(error)}`
    const notice: EngineEvent = { type: 'notice', level: 'warn', code: 'mcp_failed', text }
    return { tools: [], notices: context.signal.aborted ? [] : [notice], close: async () => {} }
  }
}

function createTransport(
  server: McpServer,
  context: EngineContext,
  onEndless: (error: Error) => void,
): MCPClientConfig['transport'] {
  if (server.type === 'stdio') {
    return createStdioTransport(server, context, validateJSONRPCMessage)
  }
  const { type, url, headers = {} } = server
  const fetchByRules = async (input: string | URL | Request, init?: RequestInit) =>
    bounded(await context.fetch(input instanceof Request ? input.url : String(input), init), onEndless)
  return { type, url, headers, fetch: Object.assign(fetchByRules, { preconnect: () => {} }) }
}

/** Bounds an answer: the client holds it, or an event of it, until it is complete, and does not notice when it breaks off. */
function bounded(response: Response, onEndless: (error: Error) => void): Response {
  const { status, statusText, headers, url } = response
  let left = MAX_ANSWER_BYTES
  const isFlat = checkNesting(headers.get('content-type'))
  const counting = new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, controller) {
      left -= bytes.byteLength
      const isNested = !isFlat(bytes)
      if (left >= 0 && !isNested) {
        for (const part of partsOf(bytes, EVENT_BYTES)) controller.enqueue(part)
        return
      }
      const error = new Error(isNested ? 'its answer has JSON that is nested too deep' : 'its answer is too long')
      controller.error(error)
      onEndless(error)
    },
  })
  const body = response.body?.pipeThrough(counting) ?? null
  return Object.defineProperty(new Response(body, { status, statusText, headers }), 'url', { value: url })
}

async function listTools(server: string, client: MCPClient, signal: AbortSignal): Promise<Tool[]> {
  const { tools } = await client.listTools({ options: { signal, timeout: START_TIMEOUT_MS } })
  return tools.map(({ name, description = '', inputSchema, annotations }) => ({
    name: toolName(server, name),
    description: description.slice(0, 4000),
    inputSchema: jsonSchema({
      ...inputSchema,
      type: 'object',
      properties: inputSchema.properties ?? {},
    } as JSONSchema7),
    isReadOnly: annotations?.readOnlyHint ?? false,
    runsAlone: false,
    run: async (input, context) => {
      const options = { signal: context.signal, timeout: CALL_TIMEOUT_MS }
      return toOutput(await client.callTool({ name, arguments: { ...Object(input) }, options }))
    },
  }))
}

/** A name that every provider accepts. */
const toolName = (server: string, tool: string): string =>
  `mcp__${server}__${tool}`.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64)
