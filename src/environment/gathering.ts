/** After so much, output that is read as fast as it comes would be in small pieces, each of which costs as much as a large one. */
const MUCH_BYTES = 256 * 1024
const SMALL_BYTES = 64 * 1024
const GATHER_MS = 1

/** Waits a moment after a small piece of much output, so that the next one is larger. To be called after each piece. */
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
