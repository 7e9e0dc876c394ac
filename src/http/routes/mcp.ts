import { Elysia } from 'elysia'
import type { Mcp, McpParts } from '../mcp/handle.ts'

/** The Model Context Protocol. Its code is loaded with the first request. */
export const mcpRoutes = (parts: McpParts) => {
  let loaded: Promise<Mcp> | undefined
  const load = async () => (await import('../mcp/handle.ts')).createMcp(parts)
  const speak = () => (loaded ??= load())
  return (
    new Elysia({ prefix: '/v1/mcp' })
      // The handler reads the body itself, because the protocol has its own form for errors.
      .post('/', async ({ request }) => (await speak()).post(request), { parse: 'none' })
      .delete('/', async ({ request }) => (await speak()).end(request), { parse: 'none' })
  )
}
