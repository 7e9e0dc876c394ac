import { posix } from 'node:path'
import type { EngineContext } from '../../../src/plugin-api/index.ts'
import { readBytes } from '../../../src/read/bytes.ts'
import { cutMiddle } from '../tools/output.ts'

const names = ['AGENTS.md', 'CLAUDE.md']
const MAX_FILE_BYTES = 256 * 1024
const MAX_FILE_CHARS = 24_000

export interface Instructions {
  path: string
  text: string
}

/** Reads the project's instructions for agents. Leaves out files that cannot be read and repetitions. */
export async function readProjectInstructions({ environment, cwd, signal }: EngineContext): Promise<Instructions[]> {
  const instructions: Instructions[] = []
  for (const name of names) {
    const path = posix.join(cwd, name)
    const text = await readText(environment.files.read(path, signal))
    if (text && !instructions.some(each => each.text === text)) instructions.push({ path, text })
  }
  return instructions
}

async function readText(reading: ReturnType<EngineContext['environment']['files']['read']>): Promise<string> {
  try {
    const bytes = await readBytes((await reading).body, MAX_FILE_BYTES)
    return bytes ? cutMiddle(bytes.toString('utf8').trim(), MAX_FILE_CHARS) : ''
  } catch {
    // Most directories have no such file.
    return ''
  }
}
