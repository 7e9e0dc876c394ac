import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { useDurability } from '../../src/db/lasting.ts'
import { streamOf } from '../../src/stream/feed.ts'
import { until } from '../support/until.ts'
import { cleanUpAfterEach, cleanUpLater, puppet, read, type Scene, scene, text } from './support.ts'

cleanUpAfterEach()

/** A disk that is as slow as the test wants. A sync has what was committed when it began. */
function slowDisk({ db, path }: Scene, durability: 'normal' | 'full') {
  const other = new Database(path, { readonly: true })
  cleanUpLater(() => other.close())
  const committed = other.query<{ last: number }, []>('select coalesce(max(seq), 0) as last from run_chunks')
  const disk = {
    syncs: 0,
    /** The last chunk that is on it. */
    has: 0,
    isFailing: false,
    begun: Promise.withResolvers<void>(),
    go: Promise.withResolvers<void>(),
    free() {
      disk.go.resolve()
    },
  }
  useDurability(db, durability, async () => {
    disk.syncs += 1
    const { last } = committed.get()!
    disk.begun.resolve()
    await disk.go.promise
    if (disk.isFailing) throw new Error('EIO: i/o error, fdatasync')
    disk.has = Math.max(disk.has, last)
  })
  return disk
}

test('with full durability no reader sees a chunk before a sync that began after its commit has ended', async () => {
  const stage = scene()
  const disk = slowDisk(stage, 'full')
  const engine = puppet()
  const run = stage.runs.start(stage.init, engine.execute)
  const early = read(streamOf(stage.runs.watch(run).feed))
  engine.say(text('one '), text('two '))
  await disk.begun.promise
  await engine.taken()
  // All is committed, and the reply goes on meanwhile.
  engine.say(text('three '))
  await engine.taken()
  expect([run.log.count, run.log.stored, disk.syncs]).toEqual([0, 5, 1])
  disk.free()
  await until(() => run.log.count === 5)
  const sizes: number[] = []
  for (let step = 0; step < 40; step++) {
    disk.go = Promise.withResolvers()
    // More than the tail in memory keeps, and than a page of the database has.
    engine.say(...Array.from({ length: 40 }, (_, index) => text(`${step}.${index} `)))
    await engine.taken()
    expect(run.log.count).toBe(disk.has)
    const { frames } = await read(
      streamOf(stage.runs.resume(stage.sandbox.id)!.feed),
      ({ frames }) => frames.length >= run.log.count,
    )
    sizes.push(frames.length - disk.has)
    disk.free()
    await until(() => run.log.count === run.log.stored)
  }
  expect(sizes).toEqual(sizes.map(() => 0))
  engine.end()
  const { frames } = await early
  expect(frames.map(({ seq }) => seq)).toEqual(frames.map((_, index) => index + 1))
  expect(frames).toHaveLength(5 + 40 * 40 + 3)
  // Chunks that come together share a sync.
  expect(disk.syncs).toBeLessThan(200)
})

test('with full durability an end that the disk did not take is not shown', async () => {
  const stage = scene()
  const disk = slowDisk(stage, 'full')
  disk.free()
  const engine = puppet()
  const run = stage.runs.start(stage.init, engine.execute)
  engine.say(text('one'))
  await until(() => run.log.count === 3)
  disk.isFailing = true
  const reading = read(streamOf(stage.runs.watch(run).feed))
  engine.end()
  await run.finished
  expect(
    await reading.then(
      ({ frames }) => frames.length,
      () => 'it broke',
    ),
  ).toBe('it broke')
  expect(run.log.count).toBe(3)
  expect(stage.log.join()).toContain('its end may not outlast a loss of power')
})

test('without it no chunk waits for the disk', async () => {
  const stage = scene()
  const disk = slowDisk(stage, 'normal')
  const engine = puppet()
  const run = stage.runs.start(stage.init, engine.execute)
  for (let step = 0; step < 100; step++) engine.say(text(`${step} `))
  await engine.taken()
  const { frames } = await read(streamOf(stage.runs.watch(run).feed), ({ frames }) => frames.length === 102)
  expect([frames.length, disk.syncs]).toEqual([102, 0])
  disk.free()
  engine.end()
  await run.finished
  // The end alone: it is what a chat's answer promises.
  expect(disk.syncs).toBe(1)
})
