import { join } from 'node:path'
import { openDatabase } from '../../../db/open.ts'
import { usedBytes } from '../../../db/used-bytes.ts'
import { putAwayLogs } from '../../../runs/kept-logs.ts'
import type { Place } from '../place.ts'
import { cpuSeconds } from '../process-figures.ts'
import type { BenchServer } from '../server.ts'
import type { Measured } from './rows.ts'
import type { CapacitySizes } from './sizes.ts'

const TEXT = 'word '.repeat(50).trim()
const TURNS = 5
const WARM_UP = 10

/** Measures the cost of a chat in the server and the database, and how many chats a second are possible. */
export async function measureChats(place: Place, sizes: CapacitySizes, measured: Measured): Promise<void> {
  await using server = await place.serve([], { spares: 0, isUnlimited: true })
  const sandboxes: string[] = []
  for (let index = 0; index < sizes.atOnce; index++) sandboxes.push((await server.create()).id)
  const before = await withDatabase(place, async db => usedBytes(db))
  for (let index = 0; index < WARM_UP; index++) await chat(server, { sandboxId: sandboxes[0] })
  const cpu = cpuSeconds(server.pid)
  const startedAt = performance.now()
  let chats = 0
  const talk = async (sandboxId: string) => {
    while (performance.now() - startedAt < sizes.chatsMs) {
      let threadId: string | undefined
      for (let turn = 0; turn < TURNS; turn++)
        threadId = await chat(server, { sandboxId, ...(threadId && { threadId }) })
      chats += TURNS
    }
  }
  await Promise.all(sandboxes.map(talk))
  const seconds = (performance.now() - startedAt) / 1000
  measured.chats = { value: chats / seconds, n: chats }
  measured['chat-cpu'] = { value: ((cpuSeconds(server.pid) - cpu) * 1000) / chats, n: chats }
  await server.stop()

  const n = chats + WARM_UP
  await withDatabase(place, async db => {
    measured['chat-fresh'] = { value: (usedBytes(db) - before) / 1024 / n, n }
    // The server does this to logs ten minutes after their end.
    await putAwayLogs(db, new Date(Date.now() + 1000))
    measured['chat-kept'] = { value: (usedBytes(db) - before) / 1024 / n, n }
  })
}

async function withDatabase<Result>(
  { directory }: Place,
  work: (db: ReturnType<typeof openDatabase>) => Promise<Result>,
): Promise<Result> {
  const db = openDatabase(join(directory, 'threadbox.db'))
  try {
    return await work(db)
  } finally {
    db.close()
  }
}

/** Returns the thread's id when the reply has ended. */
async function chat(server: BenchServer, place: object): Promise<string> {
  const messages = [{ role: 'user', parts: [{ type: 'text', text: TEXT }] }]
  const response = await server.request('POST', '/v1/chat/echo', { ...place, messages })
  const text = await response.text()
  if (!response.ok || !text.includes('[DONE]')) throw new Error(`chat: ${response.status} ${text.slice(-500)}`)
  return response.headers.get('x-thread-id') ?? ''
}
