import type { Duplex } from 'node:stream'
import type { Backend } from './backend.ts'
import type { DiskSpace } from './disk-space.ts'
import type { Engine } from './engine.ts'

export type * from './backend.ts'
export type * from './code.ts'
export type * from './copies.ts'
export type * from './disk-space.ts'
export type * from './engine.ts'
export type * from './environment.ts'
export type * from './isolation.ts'
export type * from './limits.ts'
export type * from './network.ts'
export type * from './process.ts'
export type * from './processes.ts'
export type * from './snapshots.ts'

/** What the server gives to a plugin. */
export interface PluginContext {
  /** The server's data directory, absolute. */
  dataDirectory: string
  /** Absent in commands that do not watch the disk. */
  diskSpace?: DiskSpace
  /**
   * Serves a connection that a process in an environment made to the proxy's address inside. Its bytes need not be trusted. The
   * bytes of a `net.Socket` may be carried by the kernel: the socket closes then, and only the signal still cuts the connection.
   */
  serveProxy(environmentId: string, socket: Duplex, signal?: AbortSignal): void
  /**
   * Serves a connection that a process in an environment made to any address: `destination` is where it wanted to go, which need
   * not be believed. As of `serveProxy` its bytes may be carried by the kernel. Absent in commands that serve nothing.
   */
  serveDirect?(
    environmentId: string,
    socket: Duplex,
    destination: { address: string; port: number },
    signal?: AbortSignal,
  ): void
  /**
   * Answers a DNS message of a process in an environment, by the sandbox's rules. The message need not be trusted. Undefined: it
   * gets no answer. Never rejects. Absent in commands that give sandboxes no network.
   */
  answerName?(environmentId: string, message: Uint8Array, transport: 'udp' | 'tcp'): Promise<Uint8Array | undefined>
  /**
   * Serves a connection that a process in an environment made to its SSH agent's socket. Its bytes need not be trusted. Absent in
   * commands that serve nothing.
   */
  serveSshAgent?(environmentId: string, socket: Duplex): void
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
