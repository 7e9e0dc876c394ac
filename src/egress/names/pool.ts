import type { Address } from '../../read/addresses.ts'

/** Names that one sandbox's pool keeps. One more takes the place of the name that was not used for the longest time. */
export const MAX_POOL_NAMES = 16_384

/** 198.18.0.0/15. Its first addresses belong to the sandbox's own interface. */
const FIRST = 0xc612_0000n
const RESERVED = 256
const SIZE = 2 ** 17

/** fd74:6872:6561:6462::/64. An address of it ends in the IPv4 address of the same name. */
const FIRST_6 = 0xfd74_6872_6561_6462_0000_0000_0000_0000n

/** The addresses that stand for names inside one sandbox. Nothing has them but the sandbox's own network. */
export interface NamePool {
  /** The address that stands for a name, in small letters, as text. The name counts as used. */
  addressFor(name: string, version: 4 | 6): string
  /** The name that an address stands for, which counts as used. Undefined when it stands for no name that is known. */
  nameOf(address: Address): string | undefined
}

/** Whether an address belongs to the pools of sandboxes, whatever it stands for. */
export const isPoolAddress = ({ version, value }: Address): boolean =>
  version === 4 ? value >> 17n === FIRST >> 17n : value >> 64n === FIRST_6 >> 64n

/** An empty pool. With the same key a name gets the same address again, unless another has that. */
export function createNamePool(key: string, maxNames = MAX_POOL_NAMES): NamePool {
  /** The last is the one that was used last. */
  const slots = new Map<string, number>()
  const names = new Map<number, string>()
  // Kept: a new one would walk over all that was taken from the front before.
  let front = slots.entries()

  const use = (name: string, slot: number) => {
    slots.delete(name)
    slots.set(name, slot)
  }
  const forgetOldest = () => {
    let { value: oldest } = front.next()
    if (!oldest) {
      front = slots.entries()
      oldest = front.next().value
    }
    if (!oldest) return
    slots.delete(oldest[0])
    names.delete(oldest[1])
  }
  const add = (name: string) => {
    if (slots.size >= maxNames) forgetOldest()
    let slot = Bun.hash.xxHash32(`${key}\n${name}`) % SIZE
    while (slot < RESERVED || names.has(slot)) slot = (slot + 1) % SIZE
    names.set(slot, name)
    return slot
  }

  return {
    addressFor(name, version) {
      const slot = slots.get(name) ?? add(name)
      use(name, slot)
      const value = Number(FIRST) + slot
      if (version === 4) return [24, 16, 8, 0].map(shift => (value >>> shift) & 255).join('.')
      return `fd74:6872:6561:6462::${(value >>> 16).toString(16)}:${(value & 0xffff).toString(16)}`
    },
    nameOf(address) {
      if (!isPoolAddress(address)) return undefined
      const { version, value } = address
      const within = version === 4 ? value : value - FIRST_6
      const slot = Number(within - FIRST)
      const name = names.get(slot)
      if (name !== undefined) use(name, slot)
      return name
    },
  }
}
