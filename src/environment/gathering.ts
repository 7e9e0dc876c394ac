/**
 * Once more output than this has come, small pieces are gathered: pieces that are read as fast as they come would be small, and each
 * costs as much as a large one.
 */
const MUCH_BYTES = 256 * 1024
const SMALL_BYTES = 64 * 1024
const GATHER_MS = 1

/**
 * Makes a function to be called after each piece. After a small piece of much output it waits a moment, so that the next piece is larger.
 */
export function createGathering(onMuch: () => void = () => {}): (byteLength: number) => Promise<void> | undefined {
  let count = 0
  return byteLength => {
    const before = count
    count += byteLength
    if (count <= MUCH_BYTES) return undefined
    if (before <= MUCH_BYTES) onMuch()
    return byteLength < SMALL_BYTES ? Bun.sleep(GATHER_MS) : undefined
  }
}
