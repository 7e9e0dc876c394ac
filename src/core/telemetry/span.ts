import type { SpanContext } from './trace-context.ts'

export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

/** A piece of work that has ended. */
export interface Span {
  context: SpanContext
  parentSpanId?: string
  name: string
  kind: 'internal' | 'server' | 'client'
  /** Milliseconds since 1970. */
  beginMs: number
  endMs: number
  attributes: Attributes
  /** One word for why it failed; absent when it did not. */
  errorType?: string
}

/** A piece of work that has begun. */
export interface OpenSpan {
  context: SpanContext
  parentSpanId?: string
  beginMs: number
}

/** The present time in milliseconds since 1970, with fractions. */
export const preciseNow = (): number => performance.timeOrigin + performance.now()
