import type { Engine, Plugin } from '../../src/plugin-api/index.ts'

/** The engine of a plugin that needs nothing of its server. */
export function engineOf({ name, engine }: Plugin): Engine {
  if (!engine) throw new Error(`${name} has no engine`)
  return engine({ dataDirectory: '/nowhere', serveProxy: (_, socket) => void socket.destroy(), log: console.error })
}
