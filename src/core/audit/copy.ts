import type { Database } from 'bun:sqlite'
import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { getAuditAnchor, listAuditAfter } from '../../db/audit.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { findSetting, saveSetting } from '../../db/settings.ts'
import { messageOf } from '../../errors.ts'
import type { AuditLink } from '../../model/audit.ts'
import { codeOf } from '../../read/error-code.ts'
import type { WriteLine } from './audit-log.ts'
import { exportedLine, readExportedLine } from './exported-line.ts'

const LOOK_MS = 1000
const BATCH = 1000
/** The setting with the last row that was copied: the file itself may have been rotated away. */
const COPIED = 'audit_copied'
/** The part of the file that is read to find its last line; it is longer than the longest line. */
const TAIL_BYTES = 1024 * 1024

/** Appends each row of the chain to a file within a second, so that another program can ship it. Rows that commands beside the server write come too. */
export function startAuditCopy(
  { db, log }: { db: Database; log: WriteLine },
  file: string,
): { close(): Promise<void> } {
  let copied: number | undefined
  let running: Promise<void> = Promise.resolve()
  let isFailing = false

  const copy = async () => {
    copied ??= await findBegin({ db, log }, file)
    for (;;) {
      const links = listAuditAfter(db, copied, BATCH)
      const last = links.at(-1)
      if (!last) return
      await append(file, links.map(exportedLine).join(''))
      copied = last.seq
      await writeWhenFree(db, () => saveSetting(db, COPIED, String(last.seq)))
    }
  }
  const look = () => {
    running = running.then(copy).then(
      () => {
        isFailing = false
      },
      error => {
        // Some of these rows may have reached the file.
        copied = undefined
        if (!isFailing) log(`--audit-file: ${messageOf(error)}`, 'error')
        isFailing = true
      },
    )
  }
  const timer = setInterval(look, LOOK_MS)
  look()
  return {
    async close() {
      clearInterval(timer)
      look()
      await running
    },
  }
}

/** Appends text and syncs it to the disk: rows that are marked as copied are not copied again after a loss of power. */
async function append(file: string, text: string): Promise<void> {
  const opened = await open(file, 'a', 0o600)
  try {
    await opened.appendFile(text)
    await opened.datasync()
  } finally {
    await opened.close()
  }
}

/** Finds the number of the row after which copying continues. */
async function findBegin({ db, log }: { db: Database; log: WriteLine }, file: string): Promise<number> {
  const copied = Number(findSetting(db, COPIED) ?? 0)
  const last = await findLastCopied(file)
  if (!last) return copied
  const [same] = listAuditAfter(db, last.seq - 1, 1)
  const isCutSince = last.seq <= getAuditAnchor(db).seq
  if (isCutSince || same?.hash === last.hash) return Math.max(copied, last.seq)
  log(
    `--audit-file: its row ${last.seq} is not of this database, which is another one: rows after ${copied} follow`,
    'error',
  )
  return copied
}

/** Finds the last row in a file and cuts off a line that a crash has left incomplete. Undefined when the file has no row. */
async function findLastCopied(file: string): Promise<AuditLink | undefined> {
  await mkdir(dirname(file), { recursive: true })
  const opened = await open(file, 'r+').catch(error => {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  })
  if (!opened) return undefined
  try {
    const { size } = await opened.stat()
    const start = Math.max(0, size - TAIL_BYTES)
    const tail = Buffer.alloc(size - start)
    await opened.read(tail, 0, tail.byteLength, start)
    const end = tail.lastIndexOf('\n')
    if (start + end + 1 < size) await opened.truncate(start + end + 1)
    if (end < 0) return undefined
    const line = tail.subarray(tail.lastIndexOf('\n', end - 1) + 1, end).toString()
    return readExportedLine(line, 0)
  } finally {
    await opened.close()
  }
}
