export const IDS_PER_JAIL = 65536

const FIRST_ID = 0x70000000
/** The last range is left out: 0xffffffff is no id. */
export const END_ID = 0xffff0000

export const firstIdOf = (slot: number) => FIRST_ID + slot * IDS_PER_JAIL

export const isSlot = (value: unknown): value is number =>
  Number.isInteger(value) && typeof value === 'number' && value >= 0 && firstIdOf(value) < END_ID

/** Ranges of user ids, one for each environment as long as it exists. */
export interface Slots {
  /** The lowest free one. Throws when every range is in use. */
  take(): number
  /** Takes a known one, as of an environment found at start. False when it is in use. */
  claim(slot: number): boolean
  release(slot: number): void
}

export function createSlots(): Slots {
  const used = new Set<number>()

  return {
    take() {
      let slot = 0
      while (used.has(slot)) slot += 1
      if (!isSlot(slot)) throw new Error('every range of user ids is in use: there are too many sandboxes')
      used.add(slot)
      return slot
    },
    claim(slot) {
      if (used.has(slot)) return false
      used.add(slot)
      return true
    },
    release: slot => void used.delete(slot),
  }
}
