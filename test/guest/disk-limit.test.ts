import { expect, test } from 'bun:test'
import { watchDisk } from '../../src/guest/host/disk-limit.ts'

test('a sandbox that was stopped for its files may be used to remove some, and not to write more', async () => {
  let used = 50
  const watch = watchDisk({ disk: { limitMb: 64, usedMb: async () => used } })
  const look = () => watch.findExcess(true)
  expect(await look()).toBeUndefined()
  used = 83
  expect(await look()).toBe('its files took 83 MB, its limit is 64 MB')
  watch.touched()
  expect([await look(), await look()]).toEqual([undefined, undefined])
  used = 90
  expect(await look()).toBe('its files took 90 MB, its limit is 64 MB')
  watch.touched()
  used = 10
  expect(await look()).toBeUndefined()
  used = 83
  expect(await look()).toBe('its files took 83 MB, its limit is 64 MB')
})
