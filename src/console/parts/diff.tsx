import { type Change, diffLines } from 'diff'
import { useMemo } from 'react'
import './diff.css'

/** A longer comparison would block the page. */
const MAX_COMPARED = 200_000
const TIMEOUT_MS = 300

export interface DiffProps {
  before: string
  after: string
  /** The number of lines around each change. Without it, all lines are shown. */
  context?: number
  /** The number of diffs on the page, which share its time. Without it, this diff is the only one. */
  among?: number
}

/** Shows the changes of a text, line by line. */
export function Diff({ before, after, context = Number.POSITIVE_INFINITY, among = 1 }: DiffProps) {
  const pieces = useMemo(() => {
    const isLarge = before.length + after.length > MAX_COMPARED
    return isLarge ? undefined : diffLines(before, after, { timeout: TIMEOUT_MS / among })
  }, [before, after, among])
  const shown = pieces ?? [
    { value: before, removed: true, added: false },
    { value: after, removed: false, added: true },
  ]
  return (
    <pre className="diff">
      {shown.map((piece, index) => {
        const { added, removed } = piece
        const Piece = added ? 'ins' : removed ? 'del' : 'span'
        const sign = added ? '+ ' : removed ? '- ' : '  '
        const lines = linesOf(piece, context, { isFirst: index === 0, isLast: index === shown.length - 1 })
        // biome-ignore lint/suspicious/noArrayIndexKey: the pieces of a diff never move
        return <Piece key={index}>{lines.map(line => `${sign}${line}\n`).join('')}</Piece>
      })}
    </pre>
  )
}

/** Keeps from unchanged parts only the lines next to a change. */
function linesOf(
  { value, added, removed }: Pick<Change, 'value' | 'added' | 'removed'>,
  context: number,
  { isFirst, isLast }: { isFirst: boolean; isLast: boolean },
): string[] {
  const lines = value.replace(/\n$/, '').split('\n')
  if (value === '') return []
  const [above, below] = [isFirst ? 0 : context, isLast ? 0 : context]
  if (added || removed || lines.length <= above + below + 1) return lines
  return [...lines.slice(0, above), '…', ...lines.slice(lines.length - below)]
}
