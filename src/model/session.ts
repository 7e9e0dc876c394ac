/** A signed-in browser. It may do what the key may with which it signed in. */
export interface Session {
  id: string
  teamId: string
  /** Absent for the configured key, and for a link that the operator made. */
  keyId?: string
  /** Set when the configured key signed in. */
  configuredKeyHash?: string
  /** The browser's description of itself. */
  browser: string
  createdAt: string
  expiresAt: string
}
