import type { Database } from 'bun:sqlite'

/** What the rows of a database take in its file, without the pages that are free for new ones. */
export function usedBytes(db: Database): number {
  const read = (name: string) => Number(Object.values(db.query<object, []>(`pragma ${name}`).get() ?? {})[0])
  return (read('page_count') - read('freelist_count')) * read('page_size')
}
