import type { Database } from 'bun:sqlite'

/** The bytes of a database's file that its rows use, without free pages. */
export function usedBytes(db: Database): number {
  const read = (name: string) => Number(Object.values(db.query<object, []>(`pragma ${name}`).get() ?? {})[0])
  return (read('page_count') - read('freelist_count')) * read('page_size')
}
