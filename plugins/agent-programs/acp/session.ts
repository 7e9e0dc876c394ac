import type { TurnOptions } from '../../../src/plugin-api/index.ts'

/** What a session with a program is begun with. */
export interface AcpSession {
  cwd: string
  options: TurnOptions
  systemPrompt?: string
  /** The way to log in that the program wants to be told of. */
  authMethod?: string
  /** The session's mode when the agent names none. */
  mode?: string
  /** Texts of its model have an id: one without is the program's own warning. */
  namesTexts?: true
  /** Goes on with this one. */
  resume?: string
}
