import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { areas } from './areas.ts'
import { openAttempt } from './attempt.ts'

/** A program prints this as its last line when it has tried everything. */
export const END = 'end'

/**
 * Runs one program in a sandbox: `probe AREA/NAME [WORD…]`. Prints a line for each thing that got through, and the line `end` last.
 * Rejects when the program could not try.
 */
export async function probe([id = '', ...words]: readonly string[]): Promise<number> {
  if (id === 'peer') return await (await import('./peer.ts')).keepAsPeer(say)
  const [area = '', name = ''] = id.split('/')
  const program = Object.hasOwn(areas, area) ? (await areas[area]?.())?.[name] : undefined
  if (!program) throw new Error(`there is no program ${id}: threadbox selftest starts this`)
  const directory = mkdtempSync(join(tmpdir(), 'selftest-'))
  process.chdir(directory)
  try {
    await program(openAttempt(process.env, words, say))
  } finally {
    // A program may have changed its root or its directory.
    try {
      rmSync(directory, { recursive: true, force: true })
    } catch {}
  }
  say(END)
  return 0
}

const say = (line: string) => console.log(line)
