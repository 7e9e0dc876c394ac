import type { Database } from 'bun:sqlite'
import { whenFree } from '../db/busy.ts'
import { lasting } from '../db/lasting.ts'

/** What goes on in a sandbox is not in the database. */
const insideSandbox = /^\/v1\/sandboxes\/[^/]+\/(exec|files|git|ports|processes)(\/|$)/

/**
 * Handles a request that may change the database: not before the database can be written to, while others are answered, and
 * it answers when what was changed outlasts a loss of power. Throws server_busy, and what the disk's failure is.
 */
export async function committed(db: Database, request: Request, handle: () => Promise<Response>): Promise<Response> {
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (isRead || insideSandbox.test(new URL(request.url).pathname)) return await handle()
  await whenFree(db)
  const response = await handle()
  await lasting(db)
  return response
}
