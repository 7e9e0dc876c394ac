import type { ServerClient } from './server-client.ts'

/** Reads all pages of a list of a server, whose rows have this name in the answer. */
export async function listAll<Row>(server: ServerClient, path: string, name: string): Promise<Row[]> {
  const all: Row[] = []
  let before: string | null = null
  do {
    const query: string = `limit=200${before === null ? '' : `&before=${before}`}`
    const page = (await (await server.request('GET', `${path}?${query}`)).json()) as Record<string, unknown>
    all.push(...(page[name] as Row[]))
    before = page.nextBefore as string | null
  } while (before !== null)
  return all
}
