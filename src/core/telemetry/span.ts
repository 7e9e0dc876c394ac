import type { SpanContext } from './trace-context.ts'

export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

/** Something that has taken place. */
export interface Span {
  context: SpanContext
  parentSpanId?: string
  name: string
  kind: 'internal' | 'server' | 'client'
  /** Milliseconds since 1970. */
  beginMs: number
  endMs: number
  attributes: Attributes
  /** Why it failed, as a word; absent: it did not. */
  errorType?: string
}

/** A span that has begun. */
export interface OpenSpan {
  context: SpanContext
  parentSpanId?: string
  beginMs: number
}

/** This moment in milliseconds since 1970, with fractions. */
export const preciseNow = (): number => performance.timeOrigin + performance.now()
