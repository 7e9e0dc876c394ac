/** A browser that is signed in. It may do what the key may that it signed in with. */
export interface Session {
  id: string
  teamId: string
  /** Absent for the configured key, and for a link that the operator made. */
  keyId?: string
  /** Set when the configured key signed in. */
  configuredKeyHash?: string
  /** What the browser calls itself. */
  browser: string
  createdAt: string
  expiresAt: string
}
