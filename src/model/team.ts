import type { LimitTexts } from './limit.ts'

export interface Team {
  id: string
  name: string
  createdAt: string
  /** Its own, in place of the server's. */
  limits?: LimitTexts
}
