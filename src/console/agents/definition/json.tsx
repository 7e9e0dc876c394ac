import { useId } from 'react'

export interface JsonProps {
  text: string
  /** Why the text is no definition. */
  problem: string | undefined
  type: (text: string) => void
}

/** The whole definition as its file has it. */
export function Json({ text, problem, type }: JsonProps) {
  const id = useId()
  return (
    <div className="card stack json">
      <label className="field">
        <span>JSON</span>
        <textarea
          className="mono"
          spellCheck={false}
          aria-invalid={problem !== undefined}
          aria-describedby={`${id}-hint${problem ? ` ${id}-problem` : ''}`}
          value={text}
          onChange={event => type(event.target.value)}
        />
      </label>
      {problem && (
        <p id={`${id}-problem`} role="alert" className="fault">
          {problem}
        </p>
      )}
      <p id={`${id}-hint`} className="hint">
        As an agent file has it. null stands for a value that is kept, and not shown.
      </p>
    </div>
  )
}
