import type { Database } from 'bun:sqlite'
import { canStartThread } from '../descriptor.ts'

/**
 * Reads that may take long, in a thread beside the event loop. Each opens the database anew, and so sees what was committed
 * before. The thread ends when it has had nothing to do for a while.
 */

const IDLE_MS = 30_000

const source = `
import { Database } from 'bun:sqlite'
self.onmessage = ({ data: { id, path, sql, values } }) => {
  try {
    const db = new Database(path, { readonly: true, strict: true })
    try {
      db.run('pragma busy_timeout = 5000')
      postMessage({ id, rows: db.query(sql).all(values) })
    } finally {
      db.close()
    }
  } catch (error) {
    postMessage({ id, problem: String(error) })
  }
}`

type Answer = { id: number; rows: unknown[] } | { id: number; problem: string }

interface Reader {
  worker: Worker
  /** How many reads there were. */
  count: number
  waiting: Map<number, PromiseWithResolvers<unknown[]>>
  idle: Timer | undefined
}

const readers = new WeakMap<Database, Reader>()

/** The rows of a query. Rejects when the query fails, or when no descriptor is free for the thread. */
export async function readBeside<Row>(
  db: Database,
  sql: string,
  values: Readonly<Record<string, string | number>>,
): Promise<Row[]> {
  const reader = readers.get(db) ?? startReader(db)
  clearTimeout(reader.idle)
  const id = ++reader.count
  const answer = Promise.withResolvers<unknown[]>()
  reader.waiting.set(id, answer)
  reader.worker.ref()
  reader.worker.postMessage({ id, path: db.filename, sql, values })
  return (await answer.promise) as Row[]
}

function startReader(db: Database): Reader {
  if (!canStartThread()) throw new Error('too few descriptors are free for a read beside the event loop')
  const url = URL.createObjectURL(new Blob([source], { type: 'application/javascript' }))
  const reader: Reader = { worker: new Worker(url), count: 0, waiting: new Map(), idle: undefined }
  const { worker, waiting } = reader
  const end = () => {
    readers.delete(db)
    worker.terminate()
    URL.revokeObjectURL(url)
  }
  worker.onmessage = ({ data }: MessageEvent<Answer>) => {
    const answer = waiting.get(data.id)
    waiting.delete(data.id)
    if ('rows' in data) answer?.resolve(data.rows)
    else answer?.reject(new Error(data.problem))
    if (waiting.size > 0) return
    worker.unref()
    reader.idle = setTimeout(end, IDLE_MS)
    reader.idle.unref()
  }
  worker.onerror = ({ message }) => {
    end()
    for (const answer of waiting.values()) answer.reject(new Error(`a read beside the event loop failed: ${message}`))
  }
  readers.set(db, reader)
  return reader
}
