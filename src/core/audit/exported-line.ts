import type { AuditLink } from '../../model/audit.ts'

/** Writes a link as a line of JSON that has the exact entry from which the hash was made. */
export const exportedLine = ({ entry, hash }: AuditLink): string => `{"entry":${entry},"hash":"${hash}"}\n`

const LINE = /^\{"entry":(\{"action":.*\}),"hash":"([0-9a-f]{64})"\}$/

/** Throws an error that names the line when it is not a row of the audit log. `seq` is the number in the entry. */
export function readExportedLine(text: string, line: number): AuditLink {
  const [, entry, hash] = LINE.exec(text) ?? []
  const seq = entry === undefined ? undefined : seqOf(entry)
  if (entry === undefined || hash === undefined || seq === undefined) {
    throw new Error(`line ${line} is no row of an audit log`)
  }
  return { seq, entry, hash }
}

function seqOf(entry: string): number | undefined {
  try {
    const { seq } = JSON.parse(entry)
    return Number.isSafeInteger(seq) ? seq : undefined
  } catch {
    return undefined
  }
}
