import type { Database } from 'bun:sqlite'
import { commit } from '../../core/commit.ts'
import type { Step } from './step.ts'

/** What goes on in a sandbox is not in the database. */
const insideSandbox = /^\/v1\/sandboxes\/[^/]+\/(exec|files|git|ports|processes)(\/|$)/

/**
 * Handles a request that may change the database when the database can be written to, and answers when the change would
 * survive a loss of power. Others are answered meanwhile. Throws server_busy, and the disk's own error.
 */
export const commitChanges =
  (db: Database): Step =>
  async ({ request, preview }, next) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (isRead || preview || insideSandbox.test(new URL(request.url).pathname)) return await next()
    return await commit(db, next)
  }
