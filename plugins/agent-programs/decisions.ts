import type { CallAnswer, Continuation } from '../../src/plugin-api/index.ts'

/** A program gets this as the result of a call that waits when the user goes on to something else. */
export const NOT_DECIDED = "This call waits for the user's approval and has not run."
export const WENT_ON = 'The user went on without an answer.'

export const describeDenial = (reason: string | undefined): string =>
  `The user denied this call.${reason === undefined ? '' : ` Reason: ${reason}`}`

/** What was decided, for a program that does not wait for it any more. */
export function describeDecisions({ answers, isLate }: Pick<Continuation, 'answers' | 'isLate'>): string {
  const lines = answers.map(answer => `- ${answer.name} ${JSON.stringify(answer.input)}: ${describe(answer)}`)
  const end = answers.some(({ type }) => type === 'approved')
    ? 'Make each approved call again now, once, with exactly the same input. Then go on.'
    : 'Go on with this.'
  const when = isLate ? 'The user has now decided on calls that waited' : 'These calls have waited for the user'
  return `${when}. They have not run. What has become of them:\n${lines.join('\n')}\n${end}`
}

function describe(answer: CallAnswer): string {
  switch (answer.type) {
    case 'approved':
      return 'approved.'
    case 'denied':
      return describeDenial(answer.reason)
    case 'output':
      return `the result is ${JSON.stringify(answer.output)}`
    case 'error':
      return `it failed: ${answer.error}`
  }
}
