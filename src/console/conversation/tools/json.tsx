import { Output } from './output.tsx'
import { type ToolView, textOfOutput } from './view.ts'

/** A tool that the page does not know. */
export const Json: ToolView = ({ input, output }) => (
  <>
    {input !== undefined && <Output text={JSON.stringify(input, null, 2)} />}
    <Output text={textOfOutput(output)} />
  </>
)
