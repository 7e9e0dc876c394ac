export const IDS_PER_JAIL = 65536

const FIRST_ID = 0x70000000
/** The last range is left out: 0xffffffff is no id. */
export const END_ID = 0xffff0000

/** Number of a range of user ids, from 0. */
export type UserIdRange = number

export const getFirstId = (range: UserIdRange) => FIRST_ID + range * IDS_PER_JAIL

export const isUserIdRange = (value: unknown): value is UserIdRange =>
  Number.isInteger(value) && typeof value === 'number' && value >= 0 && getFirstId(value) < END_ID

/** Gives each environment a range of user ids for as long as it exists. */
export interface UserIdRanges {
  /** Takes the lowest free range. Throws when every range is in use. */
  take(): UserIdRange
  /** Takes the range of an environment that was found at start. False when it is in use. */
  claim(range: UserIdRange): boolean
  release(range: UserIdRange): void
}

export function createUserIdRanges(): UserIdRanges {
  const used = new Set<UserIdRange>()

  return {
    take() {
      let range = 0
      while (used.has(range)) range += 1
      if (!isUserIdRange(range)) throw new Error('every range of user ids is in use: there are too many sandboxes')
      used.add(range)
      return range
    },
    claim(range) {
      if (used.has(range)) return false
      used.add(range)
      return true
    },
    release: range => void used.delete(range),
  }
}
