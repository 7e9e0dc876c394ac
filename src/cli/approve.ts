import type { Approval } from '../model/approval.ts'
import { describeCall } from './render.ts'

/** What a person decides on a call. `always`: on such calls of the thread too. */
export type Verdict = 'yes' | 'no' | 'always'

/** Asks a person, until the answer is one of the three. */
export type AskVerdict = (approval: AskedCall) => Promise<Verdict>

export type AskedCall = Pick<Approval, 'id' | 'tool' | 'input' | 'reason'>

/** Makes a function that asks a person. `question` shows a text and resolves to the line that is typed, or to undefined at the end of the input. */
export const askBy =
  (question: (text: string) => Promise<string | undefined>): AskVerdict =>
  async call => {
    for (;;) {
      const line = await question(`${describeAsked(call)}\nAllow it? y, n, or always › `)
      const verdict = line === undefined ? 'no' : parseVerdict(line)
      if (verdict) return verdict
    }
  }

function parseVerdict(line: string): Verdict | undefined {
  const word = line.trim().toLowerCase()
  const verdicts: Verdict[] = ['yes', 'no', 'always']
  return word === '' ? undefined : verdicts.find(verdict => verdict.startsWith(word))
}

/** The call and why it is asked, each in one line. */
export function describeAsked({ tool, input, reason }: AskedCall): string {
  const why = reason === null ? '' : `\n  ${describeReason(reason)}`
  return `${describeCall(tool, input)}${why}`
}

const describeReason = (reason: string): string => reason.replace(/\p{Cc}+/gu, ' ')

/** The body of the API's answer. */
export const toAnswer = (verdict: Verdict): { approved: boolean; remember?: 'thread' } =>
  verdict === 'always' ? { approved: true, remember: 'thread' } : { approved: verdict === 'yes' }
