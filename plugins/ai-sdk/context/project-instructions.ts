import { posix } from 'node:path'
import type { EngineContext } from '../../../src/plugin-api/index.ts'
import { readBytes } from '../../../src/read/bytes.ts'
import { cutMiddle } from '../tools/output.ts'

const names = ['AGENTS.md', 'CLAUDE.md']
const MAX_NOTE_BYTES = 256 * 1024
const MAX_NOTE_CHARS = 24_000

export interface Note {
  path: string
  text: string
}

/** What the project tells agents. A file that cannot be read, or says the same as another, is none. */
export async function readNotes({ environment, cwd, signal }: EngineContext): Promise<Note[]> {
  const notes: Note[] = []
  for (const name of names) {
    const path = posix.join(cwd, name)
    const text = await readNote(environment.files.read(path, signal))
    if (text && !notes.some(note => note.text === text)) notes.push({ path, text })
  }
  return notes
}

async function readNote(reading: ReturnType<EngineContext['environment']['files']['read']>): Promise<string> {
  try {
    const bytes = await readBytes((await reading).body, MAX_NOTE_BYTES)
    return bytes ? cutMiddle(bytes.toString('utf8').trim(), MAX_NOTE_CHARS) : ''
  } catch {
    // Most directories have none.
    return ''
  }
}
