import { ApiError } from '../../../errors.ts'

const NEXT = 'x-next-token'
const MOST = 100

/** Reads where a page begins and how many items it has: at most 100, which is also the default. Throws invalid_request. */
export function readPage({ limit, nextToken }: { limit?: string; nextToken?: string }): {
  limit: number
  after?: string
} {
  const size = limit === undefined ? MOST : Number(limit)
  if (!Number.isInteger(size) || size < 1)
    throw new ApiError('invalid_request', 'limit: must be a whole number, 1 or more', { field: 'limit' })
  const after = nextToken === undefined ? '' : Buffer.from(nextToken, 'base64url').toString()
  return { limit: Math.min(size, MOST), ...(after && { after }) }
}

/** Answers with a page. `last` is the id of its last item when more follow. */
export const showPage = (items: readonly object[], last: string | undefined): Response =>
  Response.json(items, { headers: last === undefined ? {} : { [NEXT]: Buffer.from(last).toString('base64url') } })
