import { Output } from './output.tsx'
import { type ToolView, textField, textOfOutput } from './view.ts'

/** A command as a terminal has it. Sequences that move its cursor or colour it are left out. */
export const Bash: ToolView = ({ input, output }) => (
  <div className="terminal-like">
    <pre>
      <span aria-hidden="true">$ </span>
      {textField(input, 'command') ?? ''}
    </pre>
    <Output text={withoutSequences(textOfOutput(output))} />
  </div>
)

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the sequences that terminals obey, ECMA-48
const sequences = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g

const withoutSequences = (text: string): string => text.replaceAll(sequences, '')
