import { useState } from 'react'

/** As much as is drawn at once: an output may have a megabyte. */
const SHOWN = 4000

/** What a tool has printed, the beginning at first. */
export function Output({ text, isProblem = false }: { text: string; isProblem?: boolean }) {
  const [isWhole, setWhole] = useState(false)
  if (text === '') return null
  const isCut = text.length > SHOWN && !isWhole
  return (
    <div>
      <pre className={isProblem ? 'output problem' : 'output'}>{isCut ? text.slice(0, SHOWN) : text}</pre>
      {isCut && (
        <button type="button" className="quiet small" onClick={() => setWhole(true)}>
          Show all {text.length.toLocaleString('en')} characters
        </button>
      )}
    </div>
  )
}
