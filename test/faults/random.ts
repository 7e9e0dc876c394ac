/** Printed by tests that use it; THREADBOX_TEST_SEED repeats a run of them. */
export const seed = Number(process.env.THREADBOX_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31))

/** Whole numbers from 1 to `most`, the same for the same seed (mulberry32). */
export function dice(from: number): (most: number) => number {
  let state = from
  return most => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return 1 + (((mixed ^ (mixed >>> 14)) >>> 0) % most)
  }
}
