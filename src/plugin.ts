import type { Duplex } from 'node:stream'
import type { Backend } from './plugin/backend.ts'
import type { DiskSpace } from './plugin/disk-space.ts'
import type { Engine } from './plugin/engine.ts'

export type * from './plugin/backend.ts'
export type * from './plugin/code.ts'
export type * from './plugin/disk-space.ts'
export type * from './plugin/engine.ts'
export type * from './plugin/environment.ts'
export type * from './plugin/processes.ts'

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
