import type { Duplex } from 'node:stream'
import type { Backend } from './backend.ts'
import type { DiskSpace } from './disk-space.ts'
import type { Engine } from './engine.ts'

export type * from './backend.ts'
export type * from './code.ts'
export type * from './disk-space.ts'
export type * from './engine.ts'
export type * from './environment.ts'
export type * from './processes.ts'

export interface PluginContext {
  /** The server's data directory, absolute. */
  dataDirectory: string
  /** Absent: nobody looks at the disk. */
  diskSpace?: DiskSpace
  /** Takes a connection that a process in an environment made to the proxy's address inside. The bytes are not trusted. */
  serveProxy(environmentId: string, socket: Duplex): void
  /** Says one line to the operator. Never a secret. */
  log(line: string): void
}

export interface Plugin {
  name: string
  backend?(context: PluginContext): Backend
  engine?(context: PluginContext): Engine
}
