import { lazy, Suspense } from 'react'
import { Output } from './output.tsx'
import { type ToolView, textField, textOfOutput } from './view.ts'

const Code = lazy(() => import('../../parts/code.tsx'))

/** As much as is highlighted. */
const MAX_LENGTH = 50_000
/** `cat -n` as tools of Claude's have it: a number, an arrow or a tab, and the line. */
const NUMBERED = /^ *\d+(?:→|\t)/

/** A file that was read, by its language. */
export const Read: ToolView = ({ input, output }) => {
  const path = textField(input, 'file_path') ?? textField(input, 'path') ?? ''
  const text = textOfOutput(output)
  const plain = text
    .split('\n')
    .map(line => line.replace(NUMBERED, ''))
    .join('\n')
  return (
    <>
      <p className="mono wrap">{path}</p>
      {text !== '' && text.length <= MAX_LENGTH ? (
        <Suspense fallback={<Output text={plain} />}>
          <Code path={path} text={plain} />
        </Suspense>
      ) : (
        <Output text={plain} />
      )}
    </>
  )
}
