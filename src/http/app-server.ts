import type { Upgrade } from './socket.ts'

/** What the app needs of the server that it runs in. Without a function, connections stay as they are. */
export interface AppServer {
  upgrade?: Upgrade
  /** Where a request comes from, for the log. */
  addressOf?(request: Request): string | undefined
  /** The request's connection is closed after so many seconds without a byte; 0: never. */
  timeout?(request: Request, seconds: number): void
  /** The same for all requests of one connection. */
  nameOf?(request: Request): string | undefined
}
