import { expect, test } from 'bun:test'
import { ApiError } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import { type GuestHome, keepEnvironment } from '../../src/guest/host/kept-environment.ts'

/** A home whose guest lists no processes, and what was done to it. */
function startHome(parts: Partial<GuestHome> = {}) {
  const done: string[] = []
  const attach = async () => {
    done.push('attach')
    const closed = Promise.withResolvers<void>()
    const processes = { list: async () => [] }
    const guest = { activeCalls: 0, processes, closed: closed.promise, close: () => closed.resolve() }
    return guest as unknown as GuestConnection
  }
  const home: GuestHome = {
    id: 'one',
    executable: [],
    describe: () => ['a jail'],
    attach,
    rejoin: async () => undefined,
    isRunning: async () => true,
    limits: {},
    usage: async () => ({}),
    stop: async () => void done.push('stop'),
    remove: async () => void done.push('remove'),
    log: () => {},
    ...parts,
  }
  return { done, environment: keepEnvironment(home) }
}

test('files that outgrow their limit end its processes once, and the next use starts it again', async () => {
  const { done, environment } = startHome({ disk: { limitMb: 10, usedMb: async () => 20 } })
  await environment.processes?.list()
  await environment.checkDisk()
  await environment.checkDisk()
  expect(done).toEqual(['attach', 'stop'])
  expect(environment.confinement?.at(-1)).toContain('its files took 20 MB, its limit is 10 MB')
  await environment.processes?.list()
  expect(done).toEqual(['attach', 'stop', 'attach'])
})

test('one that is paused is not halted, and one that is halted says why until it is used', async () => {
  const { done, environment } = startHome()
  await environment.pause?.()
  await environment.halt(new ApiError('disk_full', 'no room'))
  expect([done, environment.trouble]).toEqual([['stop'], undefined])
  await environment.processes?.list()
  await environment.halt(new ApiError('disk_full', 'no room'))
  expect(environment.trouble).toContain('no room')
  await environment.processes?.list()
  expect(environment.trouble).toBeUndefined()
})

test('a removal that failed is tried again, and nobody uses the environment meanwhile', async () => {
  let tries = 0
  const remove = async () => {
    if (++tries === 1) throw new Error('busy')
  }
  const { done, environment } = startHome({ remove })
  await expect(environment.destroy()).rejects.toThrow('busy')
  expect(environment.isDestroyed).toBe(true)
  await expect(environment.processes?.list()).rejects.toThrow('The sandbox was deleted.')
  await environment.destroy()
  expect([done, tries]).toEqual([[], 2])
})
