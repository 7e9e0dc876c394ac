import { useEffect, useRef, useState } from 'react'
import type { CreateStep } from '../api/create-sandbox.ts'
import { bytes } from '../parts/format.ts'
import './creating.css'

/** How much of the output stays on the page. */
const KEPT = 100_000

interface Creating {
  stage: string
  message?: string
  doneBytes?: number
  totalBytes?: number
  output: string
}

const nothing: Creating = { stage: 'The sandbox is made…', output: '' }

/** How far the create is, by its steps. */
export function useCreating() {
  const [creating, setCreating] = useState(nothing)
  const onStep = (step: CreateStep) => setCreating(before => after(before, step))
  return { creating, onStep, reset: () => setCreating(nothing) }
}

function after({ message: _, doneBytes, totalBytes, ...before }: Creating, step: CreateStep): Creating {
  if (step.type === 'stage') return { ...before, stage: wordsOf(step) }
  if (step.type === 'progress') {
    const { type, ...progress } = step
    return { ...before, ...progress }
  }
  return { ...before, output: (before.output + step.data).slice(-KEPT) }
}

function wordsOf({ stage, number, of }: CreateStep & { type: 'stage' }): string {
  if (stage === 'archive') return 'The files of the agent are unpacked…'
  if (stage === 'files') return 'Files are written…'
  return stage === 'setup' ? `Set-up command ${number} of ${of} runs…` : nothing.stage
}

export interface CreatingViewProps {
  creating: Creating
  cancel: () => void
}

/** What is done while a sandbox is made, with what its set-up prints. */
export function CreatingView({ creating, cancel }: CreatingViewProps) {
  const { stage, message, doneBytes, totalBytes, output } = creating
  const whole = useRef<HTMLElement>(null)
  const end = useRef<HTMLPreElement>(null)
  // The create may be started by a button at the other end of the page.
  useEffect(() => {
    whole.current?.scrollIntoView({ block: 'center' })
  }, [])
  // biome-ignore lint/correctness/useExhaustiveDependencies: it follows the end as the text grows
  useEffect(() => {
    end.current?.scrollTo({ top: end.current.scrollHeight })
  }, [output])
  return (
    <section ref={whole} className="card stack" aria-label="The new sandbox">
      <div className="row spread">
        <p role="status">{stage}</p>
        <button type="button" onClick={cancel}>
          Cancel
        </button>
      </div>
      {message && (
        <p className="hint">
          {message}
          {doneBytes !== undefined && totalBytes !== undefined && `: ${bytes(doneBytes)} of ${bytes(totalBytes)}`}
        </p>
      )}
      {doneBytes !== undefined && <progress aria-label={message} value={doneBytes} max={totalBytes} />}
      {output && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard
        <pre ref={end} className="set-up-output" role="log" aria-label="Output of the set-up" tabIndex={0}>
          {output}
        </pre>
      )}
    </section>
  )
}
