import { Output } from './output.tsx'
import { type ToolView, textField, textOfOutput } from './view.ts'

/** A page that was read. */
export const WebFetch: ToolView = ({ input, output }) => {
  const url = textField(input, 'url') ?? ''
  const prompt = textField(input, 'prompt')
  return (
    <div className="card stack">
      {/^https?:\/\//i.test(url) ? (
        <a href={url} target="_blank" rel="noopener noreferrer nofollow">
          {url}
        </a>
      ) : (
        <span>{url}</span>
      )}
      {prompt && <p className="hint">{prompt}</p>}
      <Output text={textOfOutput(output)} />
    </div>
  )
}
