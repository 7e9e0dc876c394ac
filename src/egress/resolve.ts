import { lookup } from 'node:dns/promises'
import type { Resolve } from './dial.ts'

/** Resolves a name as programs on this machine do: by its hosts file and its resolver. */
export const resolveBySystem: Resolve = async name => {
  const found = await lookup(name, { all: true, order: 'verbatim' })
  return found.map(({ address }) => address)
}
