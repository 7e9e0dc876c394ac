const LINE_FEED = 0x0a
const RETURN = 0x0d
const QUOTE = 0x22
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPENING = [0x5b, 0x7b]
const CLOSING = [0x5d, 0x7d]
const NOT_ASCII = 0x80
const DATA = Buffer.from('data')

/** Deeper than any honest message. A runtime takes seconds to find out that a value is too deep to be written again. */
const MAX_DEPTH = 500

/** Sees JSON as it comes, in pieces of any size, before a parser does. Says whether it is still flat enough for one. */
export type NestingCheck = (bytes: Uint8Array) => boolean

/** The check for an answer with this content type: events, one JSON text, or, where parsers may differ, either. */
export function checkNesting(contentType: string | null): NestingCheck {
  const events = createEventNesting()
  if (/^text\/event-stream *(;|$)/i.test(contentType ?? '') && !contentType?.includes('json')) return events
  const depth = createDepth()
  return bytes => {
    const isFlat = events(bytes)
    for (const byte of bytes) depth.take(byte)
    return isFlat && depth.isFlat()
  }
}

/** Of server-sent events: the lines of one event that begin with `data` are one text, other lines are none of it. */
function createEventNesting(): NestingCheck {
  let depth = createDepth()
  /** How much of the line was read, and whether it is one of data. */
  let length = 0
  let isData = true
  let isAfterReturn = false
  let isFlat = true
  let isStart = true

  return bytes => {
    for (const byte of bytes) {
      // A byte order mark: parsers skip it, some also one that was encoded twice.
      if (isStart && byte >= NOT_ASCII) continue
      isStart = false
      const isRest = byte === LINE_FEED && isAfterReturn
      isAfterReturn = byte === RETURN
      if (isRest) continue
      if (byte === LINE_FEED || byte === RETURN) {
        // An empty line ends the event.
        if (length === 0 && depth.isUsed()) {
          isFlat &&= depth.isFlat()
          depth = createDepth()
        }
        length = 0
        isData = true
        continue
      }
      if (length < DATA.byteLength) isData &&= byte === DATA[length]
      else if (length === DATA.byteLength) isData &&= byte === COLON
      else if (isData) depth.take(byte)
      length++
    }
    isFlat &&= depth.isFlat()
    return isFlat
  }
}

function createDepth() {
  let depth = 0
  let deepest = 0
  let isString = false
  let isEscaped = false
  let isUsed = false
  return {
    isUsed: () => isUsed,
    isFlat: () => deepest <= MAX_DEPTH,
    take(byte: number) {
      isUsed = true
      if (isEscaped) isEscaped = false
      else if (isString) {
        if (byte === BACKSLASH) isEscaped = true
        else if (byte === QUOTE) isString = false
      } else if (byte === QUOTE) isString = true
      else if (byte === OPENING[0] || byte === OPENING[1]) deepest = Math.max(deepest, ++depth)
      else if (byte === CLOSING[0] || byte === CLOSING[1]) depth--
    },
  }
}
