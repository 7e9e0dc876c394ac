import type { Upgrade } from './socket.ts'

/** What the app needs of the server that it runs in. Without a function, connections stay as they are. */
export interface AppServer {
  upgrade?: Upgrade
  /** The address of the request's connection: a proxy's where one is in front. `addressOf` in address.ts finds the caller's. */
  addressOf?(request: Request): string | undefined
  /** Whether the server is shutting down. */
  isClosing?(): boolean
  /** The request's connection is closed after so many seconds without a byte; 0: never. */
  timeout?(request: Request, seconds: number): void
  /** Called when a valid key was sent on the request's connection. */
  keyShown?(request: Request): void
  /** The same for all requests of one connection. */
  nameOf?(request: Request): string | undefined
}
