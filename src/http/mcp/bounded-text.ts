/** A text of which the beginning and the end are kept. */
export interface BoundedText {
  add(text: string): void
  /** With a note in place of what is left out. */
  text(): string
  readonly isCut: boolean
}

/** Keeps so many characters, half of them from the end. */
export function createBoundedText(characters: number): BoundedText {
  const half = Math.ceil(characters / 2)
  let head = ''
  let tail = ''
  let left = 0
  const shorten = () => {
    left += tail.length - half
    tail = tail.slice(-half)
  }
  return {
    add(text) {
      const room = half - head.length
      head += text.slice(0, room)
      tail += text.slice(room)
      // Not with each piece: that would copy the end again and again.
      if (tail.length > 4 * half) shorten()
    },
    get isCut() {
      return left > 0 || tail.length > half
    },
    text() {
      if (tail.length > half) shorten()
      const text = left > 0 ? `${head}\n[${left} characters are left out here]\n${tail}` : head + tail
      return text.toWellFormed()
    },
  }
}
