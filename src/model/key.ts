import type { LimitTexts } from './limit.ts'
import type { Scope } from './scope.ts'

/** An API key as it is stored: only a hash of it, and its last four characters to know it by. */
export interface ApiKey {
  id: string
  teamId: string
  name: string
  hint: string
  createdAt: string
  expiresAt?: string
  revokedAt?: string
  /** Absent when the key may do everything. */
  scopes?: readonly Scope[]
  /** The key's own limits, which replace the server's. */
  limits?: LimitTexts
}

export interface ApiKeyInput {
  teamId: string
  name: string
  hash: string
  hint: string
  expiresAt?: string
  /** Absent when the key may do everything. */
  scopes?: readonly Scope[]
  /** The key's own limits, which replace the server's. */
  limits?: LimitTexts
}
