import type { Duplex } from 'node:stream'
import type { Backend } from './backend.ts'
import type { DiskSpace } from './disk-space.ts'
import type { Engine } from './engine.ts'

export type * from './backend.ts'
export type * from './code.ts'
export type * from './disk-space.ts'
export type * from './engine.ts'
export type * from './environment.ts'
export type * from './network.ts'
export type * from './process.ts'
export type * from './processes.ts'

/** What the server gives to a plugin. */
export interface PluginContext {
  /** The server's data directory, absolute. */
  dataDirectory: string
  /** Absent in commands that do not watch the disk. */
  diskSpace?: DiskSpace
  /** Serves a connection that a process in an environment made to the proxy's address inside. Its bytes need not be trusted. */
  serveProxy(environmentId: string, socket: Duplex): void
  /** Writes one line to the operator's log. Never a secret. */
  log(line: string): void
}

/**
 * The default export of a plugin's file, or one item of it. Each function is called once, when the server starts.
 *
 * @example
 * import type { Plugin } from 'threadbox'
 *
 * export default { name: 'shout', engine: () => shout } satisfies Plugin
 */
export interface Plugin {
  /** Lower-case letters, digits and hyphens; unique in the server. The backend and the engine have the same name. */
  name: string
  backend?(context: PluginContext): Backend
  engine?(context: PluginContext): Engine
}
