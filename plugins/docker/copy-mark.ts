import { existsSync, readFileSync } from 'node:fs'
import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** A file that is there while a container is copied, with the pid of who copies, and when that process began. */
const markOf = (dataDirectory: string, id: string) => join(dataDirectory, 'docker-copies', id)

/** `left`: by a backup or server that was killed. */
export function findCopying(dataDirectory: string, id: string): 'now' | 'left' | undefined {
  const mark = markOf(dataDirectory, id)
  // The usual case, without an exception.
  if (!existsSync(mark)) return undefined
  const [pid = '', began = ''] = readText(mark).split(' ')
  return pid !== '' && began !== '' && beganAt(pid) === began ? 'now' : 'left'
}

/** When a process began, in ticks since the boot. Empty when there is none. */
function beganAt(pid: string | number): string {
  const stat = readText(`/proc/${pid}/stat`)
  // The name may have anything in it; after it the state is the third field, and this the 22nd.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
}

export const removeMark = (dataDirectory: string, id: string): Promise<void> =>
  rm(markOf(dataDirectory, id), { force: true })

/** Calls `work` while the mark is there. Rejects when somebody else has it. */
export async function whileMarked<T>(dataDirectory: string, id: string, work: () => Promise<T>): Promise<T> {
  if (findCopying(dataDirectory, id) === 'left') await removeMark(dataDirectory, id)
  await mkdir(join(dataDirectory, 'docker-copies'), { recursive: true, mode: 0o700 })
  const mark = await open(markOf(dataDirectory, id), 'wx').catch(() => {
    throw new Error('it is being copied already')
  })
  try {
    await mark.writeFile(`${process.pid} ${beganAt(process.pid)}`).finally(() => mark.close())
    return await work()
  } finally {
    await removeMark(dataDirectory, id)
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
