/** What was decided on a call that a program wants to make. */
export type Verdict =
  | { type: 'allowed' }
  | { type: 'denied'; message: string }
  | { type: 'output'; output: unknown }
  | { type: 'error'; error: string }

export interface ProgramCall {
  callId: string
  name: string
  input: unknown
  /** The program says that the call changes nothing. */
  isReadOnly?: boolean
}
