import { expect, test } from 'bun:test'
import { createNamePool, isPoolAddress, MAX_POOL_NAMES } from '../../../src/egress/names/pool.ts'
import { type Address, isPublic, parseAddress } from '../../../src/read/addresses.ts'

const parsed = (text: string): Address => {
  const address = parseAddress(text)
  if (!address) throw new Error(`no address: ${text}`)
  return address
}

test('a name has one address of each version, and each leads back to it', () => {
  const pool = createNamePool('env_a')
  for (const name of ['db.example.com', 'example.com', `${'a.'.repeat(126)}a`]) {
    const [four, six] = [pool.addressFor(name, 4), pool.addressFor(name, 6)]
    expect(four).toMatch(/^198\.1[89]\.\d+\.\d+$/)
    expect(six).toStartWith('fd74:6872:6561:6462::')
    expect([pool.addressFor(name, 4), pool.addressFor(name, 6)]).toEqual([four, six])
    for (const text of [four, six]) {
      expect(pool.nameOf(parsed(text))).toBe(name)
      expect([isPoolAddress(parsed(text)), isPublic(parsed(text))]).toEqual([true, false])
    }
  }
})

test('an address that stands for no name is no name’s, in the pool and beside it', () => {
  const pool = createNamePool('env_a')
  pool.addressFor('example.com', 4)
  for (const text of ['198.18.0.1', '198.18.0.0', '198.19.255.255', 'fd74:6872:6561:6462::', 'fd74:6872:6561:6462::1'])
    expect([pool.nameOf(parsed(text)), isPoolAddress(parsed(text))]).toEqual([undefined, true])
  for (const text of ['198.17.255.255', '198.20.0.0', '1.2.3.4', '::1', 'fd74:6872:6561:6463::c612:1', '::c612:100'])
    expect([pool.nameOf(parsed(text)), isPoolAddress(parsed(text))]).toEqual([undefined, false])
})

test('after a restart a name has the address that it had, and another sandbox has its own', () => {
  const names = Array.from({ length: 50 }, (_, index) => `n${index}.example`)
  const addresses = (key: string) => names.map(name => createNamePool(key).addressFor(name, 4))
  expect(addresses('env_a')).toEqual(addresses('env_a'))
  expect(addresses('env_a')).not.toEqual(addresses('env_b'))
  const first = createNamePool('env_a')
  const second = createNamePool('env_b')
  expect(second.nameOf(parsed(first.addressFor('only-a.example', 4)))).toBeUndefined()
})

test('any number of names leaves a pool as large as it may be, with those that were used last: regression', () => {
  const count = 4 * MAX_POOL_NAMES
  const pool = createNamePool('env_a')
  const used = parsed(pool.addressFor('used.example', 4))
  const unused = parsed(pool.addressFor('unused.example', 6))
  const seen = new Map<string, string>()
  for (let index = 0; index < count; index++) {
    const name = `n${index}.example`
    const address = pool.addressFor(name, 4)
    if (index % 1000 === 0) expect(pool.nameOf(used)).toBe('used.example')
    if (index >= count - MAX_POOL_NAMES) seen.set(address, name)
  }
  expect(pool.nameOf(unused)).not.toBe('unused.example')
  expect(seen.size).toBe(MAX_POOL_NAMES)
  const wrong = [...seen].filter(([address, name]) => ![name, undefined].includes(pool.nameOf(parsed(address))))
  expect(wrong).toEqual([])
  const kept = [...seen].filter(([address, name]) => pool.nameOf(parsed(address)) === name)
  expect(kept.length).toBeGreaterThanOrEqual(MAX_POOL_NAMES - 1)
})
