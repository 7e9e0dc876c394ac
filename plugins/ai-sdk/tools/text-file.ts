import type { Environment } from '../../../src/plugin-api/index.ts'
import { readBytes } from '../../../src/read/bytes.ts'

/** A text file in memory. */
export interface TextFile {
  text: string
  /** Lines end with CRLF. */
  isCrlf: boolean
}

const MAX_EDIT_BYTES = 10 * 1024 * 1024

/** Reads a file to edit. Throws when it is larger than 10 MB, or not UTF-8, since an edit would damage it. */
export async function readTextFile({ files }: Environment, path: string, signal: AbortSignal): Promise<TextFile> {
  const bytes = await readBytes((await files.read(path, signal)).body, MAX_EDIT_BYTES)
  if (!bytes) throw new Error(`${path} is larger than 10 MB. Change it with a command.`)
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Error(`${path} is not UTF-8 text. Change it with a command.`)
  }
  if (text.includes('\0')) throw new Error(`${path} is a binary file.`)
  return { text, isCrlf: text.includes('\r\n') }
}

/** Numbers lines like `cat -n`, beginning with `from`. */
export const numbered = (lines: readonly string[], from: number): string =>
  lines.map((line, index) => `${String(from + index).padStart(6)}→${line}`).join('\n')
