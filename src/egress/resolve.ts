import { lookup } from 'node:dns/promises'
import type { Resolve } from './dial.ts'

/** Asks as programs on this machine do: its hosts file, its resolver. */
export const resolveBySystem: Resolve = async name => {
  const found = await lookup(name, { all: true, order: 'verbatim' })
  return found.map(({ address }) => address)
}
