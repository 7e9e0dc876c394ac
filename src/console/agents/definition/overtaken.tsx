import { Diff } from '../../parts/diff.tsx'

/** Lines around a change. */
const CONTEXT = 3

export interface OvertakenProps {
  /** What the draft was begun with, and what the agent is now. */
  before: string
  now: string
  takeTheirs: () => void
  keepMine: () => void
}

/** Somebody else has changed the agent while there is a draft. */
export function Overtaken({ before, now, takeTheirs, keepMine }: OvertakenProps) {
  return (
    <div role="alert" className="card stack">
      <p>Somebody else has changed this agent meanwhile.</p>
      <Diff before={before} after={now} context={CONTEXT} />
      <div className="row">
        <button type="button" onClick={takeTheirs}>
          Take theirs
        </button>
        <button type="button" onClick={keepMine}>
          Keep mine
        </button>
      </div>
    </div>
  )
}
