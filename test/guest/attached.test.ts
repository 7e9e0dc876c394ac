import { expect, test } from 'bun:test'
import { createProcessTable, type TakeOutput } from '../../src/environment/process-table.ts'
import { until } from '../support/until.ts'

const PIECE = new Uint8Array(64 * 1024)
const PIECES = 100

/** A table with a process that prints more than a table keeps. `taken` counts what it could print. */
function printing(attachedMs: number) {
  const state = { taken: 0 }
  const print = async (take: TakeOutput) => {
    for (; state.taken < PIECES; state.taken++) await take('stdout', PIECE)
    return { exitCode: 0 }
  }
  const table = createProcessTable(
    async (_options, take) => {
      const begun = Promise.withResolvers<void>()
      setImmediate(begun.resolve)
      return { pid: 7, exited: begun.promise.then(() => print(take)), signal() {}, resize() {}, async killTree() {} }
    },
    { attachedMs },
  )
  return { table, state }
}

test('a process waits for a reader that reads on, and loses nothing', async () => {
  const { table } = printing(60_000)
  await table.start({ command: 'print', waitForReader: 'attached' })
  for (let at = 0; ; ) {
    const { offset, pieces, exit } = await table.read(7, at, { wait: true })
    expect(offset).toBe(at)
    for (const { bytes } of pieces) at += bytes.byteLength
    if (!exit) continue
    expect(at).toBe(PIECES * PIECE.byteLength)
    break
  }
})

test('a process does not wait for a reader that is gone', async () => {
  const { table } = printing(1)
  await table.start({ command: 'print', waitForReader: 'attached' })
  await until(async () => (await table.get(7)).exit !== undefined)
  expect((await table.get(7)).outputStart).toBeGreaterThan(0)
})

test('a process that must lose nothing waits for its next reader', async () => {
  const { table, state } = printing(1)
  await table.start({ command: 'print', waitForReader: true })
  await until(() => state.taken >= 15)
  expect((await table.get(7)).outputStart).toBe(0)
  expect(state.taken).toBeLessThan(PIECES)
  await table.remove(7)
})
