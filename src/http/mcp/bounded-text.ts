/** Keeps the beginning and the end of a text. */
export interface BoundedText {
  add(text: string): void
  /** Returns the text, with a note in place of what was left out. */
  text(): string
  readonly isCut: boolean
}

/** Makes a text that keeps this many characters, half of them from the end. */
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
      // The end is cut only now and then: cutting with each piece would copy it again and again.
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
