import { Diff } from '../../parts/diff.tsx'
import { Output } from './output.tsx'
import { listField, type ToolView, textField, textOfOutput } from './view.ts'

/** A change of a file as a diff; a new file as lines that are added. */
export const Edit: ToolView = ({ input, output }) => {
  const content = textField(input, 'content')
  const edits = listField(input, 'edits')
  const changes = content === undefined ? (edits.length > 0 ? edits : [input]) : []
  return (
    <>
      <p className="mono wrap">{textField(input, 'file_path') ?? ''}</p>
      {content !== undefined && <Diff before="" after={content} />}
      {changes.map((each, index) => (
        <Diff
          // biome-ignore lint/suspicious/noArrayIndexKey: the changes of one call never move
          key={index}
          before={textField(each, 'old_string') ?? ''}
          after={textField(each, 'new_string') ?? ''}
          among={changes.length}
        />
      ))}
      {output !== undefined && content === undefined && <Output text={textOfOutput(output)} />}
    </>
  )
}
