import type { Address } from '../../read/addresses.ts'

/** The address of a name under in-addr.arpa or ip6.arpa, in small letters; undefined for every other name. */
export function parseReverse(name: string): Address | undefined {
  const four = /^((?:\d{1,3}\.){4})in-addr\.arpa$/.exec(name)?.[1]
  if (four !== undefined) {
    const bytes = four.split('.').slice(0, 4).reverse().map(Number)
    if (bytes.some(byte => byte > 255)) return undefined
    return { version: 4, value: bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n) }
  }
  const six = /^((?:[0-9a-f]\.){32})ip6\.arpa$/.exec(name)?.[1]
  if (six === undefined) return undefined
  return { version: 6, value: BigInt(`0x${six.replaceAll('.', '').split('').reverse().join('')}`) }
}
