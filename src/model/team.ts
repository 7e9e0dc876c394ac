import type { LimitTexts } from './limit.ts'

export interface Team {
  id: string
  name: string
  createdAt: string
  /** The team's own limits, which replace the server's. */
  limits?: LimitTexts
}
