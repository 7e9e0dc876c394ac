import { Diff } from '../../parts/diff.tsx'

/** How many lines are shown around a change. */
const CONTEXT = 3

export interface OvertakenProps {
  /** The definition with which the draft was begun, and the agent's present one. */
  before: string
  now: string
  takeTheirs: () => void
  keepMine: () => void
}

/** Shows that somebody else has changed the agent while there is a draft. */
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
