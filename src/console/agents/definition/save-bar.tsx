import { Problem } from '../../parts/problem.tsx'

export interface SaveBarProps {
  problems: readonly Error[]
  /** What has happened to the draft. */
  status: string
  canSave: boolean
  canDiscard: boolean
  saveAndTry: () => void
  discard: () => void
}

/** Stays in sight below the form, which its first button sends. */
export function SaveBar({ problems, status, canSave, canDiscard, saveAndTry, discard }: SaveBarProps) {
  return (
    <div className="row save">
      {problems.map(problem => (
        <Problem key={problem.message} error={problem} />
      ))}
      <button type="submit" className="primary" disabled={!canSave}>
        Save
      </button>
      <button type="button" disabled={!canSave} onClick={saveAndTry}>
        Save and try it
      </button>
      <button type="button" disabled={!canDiscard} onClick={discard}>
        Discard
      </button>
      <p role="status" className="hint">
        {status}
      </p>
    </div>
  )
}
