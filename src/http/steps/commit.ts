import type { Database } from 'bun:sqlite'
import { commit, read } from '../../core/commit.ts'
import type { Step } from './step.ts'

/** Routes whose effects are inside a sandbox, not in the database, and tools, which send requests of their own. */
const insideSandbox = /^\/v1\/(sandboxes\/[^/]+\/(exec|files|git|ports|processes)|mcp)(\/|$)/

/**
 * Handles a request that may change the database when the database can be written to, and answers when the change would
 * survive a loss of power. Others are answered meanwhile, with full durability
 * when what they read would survive one too. Throws server_busy, and the disk's own error.
 */
export const commitChanges =
  (db: Database): Step =>
  async ({ request, preview }, next) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const { pathname } = new URL(request.url)
    if (preview || insideSandbox.test(pathname)) return await next()
    if (isRead) return pathname.startsWith('/v1/') ? await read(db, next) : await next()
    return await commit(db, next)
  }
