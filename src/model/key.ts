/** An API key as it is stored: only a hash of it, and its last four characters to know it by. */
export interface ApiKey {
  id: string
  teamId: string
  name: string
  hint: string
  createdAt: string
  expiresAt?: string
  revokedAt?: string
}

export interface ApiKeyInput {
  teamId: string
  name: string
  hash: string
  hint: string
  expiresAt?: string
}
