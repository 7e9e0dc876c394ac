import { existsSync, readFileSync } from 'node:fs'
import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * The path of a file that exists while a container is copied. It has the pid of the copying process and when that process began.
 */
const markOf = (dataDirectory: string, id: string) => join(dataDirectory, 'docker-copies', id)

/** Whether a container is being copied. `left` means that a killed backup or server has left the mark. */
export function findCopying(dataDirectory: string, id: string): 'now' | 'left' | undefined {
  const mark = markOf(dataDirectory, id)
  // This is the usual case, so it costs no exception.
  if (!existsSync(mark)) return undefined
  const [pid = '', began = ''] = readText(mark).split(' ')
  return pid !== '' && began !== '' && beganAt(pid) === began ? 'now' : 'left'
}

/** When a process began, in ticks since the boot; an empty text when there is no such process. */
function beganAt(pid: string | number): string {
  const stat = readText(`/proc/${pid}/stat`)
  // The process's name may contain anything. After it come the third field, which is the state, and later this one, the 22nd.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
}

export const removeMark = (dataDirectory: string, id: string): Promise<void> =>
  rm(markOf(dataDirectory, id), { force: true })

/** Calls `work` while the mark exists. Rejects when another process has the mark. */
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
