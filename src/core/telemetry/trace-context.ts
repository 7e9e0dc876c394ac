/** A place in a trace, as W3C's Trace Context has it. */
export interface SpanContext {
  traceId: string
  spanId: string
  isSampled: boolean
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const SAMPLED = 1

/** Reads the header `traceparent`. Undefined when it is not one that the specification allows. */
export function parseTraceparent(text: string | undefined): SpanContext | undefined {
  const [, version, traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(text ?? '') ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED }
}

export const formatTraceparent = ({ traceId, spanId, isSampled }: SpanContext): string =>
  `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`

const randomHex = (bytes: number): string => crypto.getRandomValues(new Uint8Array(bytes)).toHex()

/** Makes a new position below `parent`; without a parent, in a new trace. */
export const childOf = (parent: SpanContext | undefined, isSampled: () => boolean): SpanContext => ({
  traceId: parent?.traceId ?? randomHex(16),
  spanId: randomHex(8),
  isSampled: parent?.isSampled ?? isSampled(),
})
