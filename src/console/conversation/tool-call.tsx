import { type DynamicToolUIPart, getToolName, type ToolUIPart } from 'ai'
import { Status } from '../parts/status.tsx'
import { Approval } from './approval.tsx'
import type { ThreadPlace } from './place.ts'
import { Bash } from './tools/bash.tsx'
import { Edit } from './tools/edit.tsx'
import { Json } from './tools/json.tsx'
import { Output } from './tools/output.tsx'
import { Read } from './tools/read.tsx'
import { summaryOf } from './tools/summary-of.ts'
import { Todos } from './tools/todos.tsx'
import type { ToolView } from './tools/view.ts'
import { WebFetch } from './tools/web-fetch.tsx'

/** How the calls of known tools are shown; others as JSON. The names are Claude's. */
const views = new Map<string, ToolView>(
  Object.entries({ Bash, Edit, MultiEdit: Edit, Write: Edit, Read, TodoWrite: Todos, WebFetch }),
)

const words = new Map<string, readonly [label: string, kind: string]>([
  ['input-streaming', ['is written', 'active']],
  ['input-available', ['runs', 'active']],
  ['approval-requested', ['waits for approval', 'waiting']],
  ['approval-responded', ['answered', 'active']],
  ['output-available', ['done', 'completed']],
  ['output-error', ['failed', 'error']],
  ['output-denied', ['denied', 'denied']],
])

export interface ToolCallProps {
  place: ThreadPlace
  part: ToolUIPart | DynamicToolUIPart
  isLive: boolean
  refresh: () => Promise<void>
}

/** A call of a tool: what it is to do, what became of it, and a question where a person has to decide. */
export function ToolCall({ place, part, isLive, refresh }: ToolCallProps) {
  const name = getToolName(part)
  const View = views.get(name) ?? Json
  const input: unknown = part.input
  const output: unknown = part.state === 'output-available' ? part.output : undefined
  const problem = part.state === 'output-error' ? part.errorText : undefined
  const [label, kind] = words.get(part.state) ?? [part.state, part.state]
  const isOpen = part.state === 'approval-requested' || isLive || name === 'TodoWrite'
  return (
    <details className="call" open={isOpen}>
      <summary>
        <span className="tool">{name}</span>
        <span className="cut grow mono">{summaryOf(name, input)}</span>
        <Status of={kind} label={label} />
      </summary>
      <div className="stack">
        <View input={input} output={output} />
        {problem !== undefined && <Output text={problem} isProblem />}
        {part.state === 'approval-requested' && (
          <Approval place={place} approvalId={part.approval.id} refresh={refresh} />
        )}
      </div>
    </details>
  )
}
