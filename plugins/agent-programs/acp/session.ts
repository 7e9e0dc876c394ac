import type { ClientTool, TurnOptions } from '../../../src/plugin-api/index.ts'

/** The parameters of a session with a program. */
export interface AcpSession {
  cwd: string
  options: TurnOptions
  /** The program is to ask before each call. */
  asks: boolean
  clientTools: Readonly<Record<string, ClientTool>>
  systemPrompt?: string
  /** The id of the login method that the program must be asked for. */
  authMethod?: string
  /** The session's mode unless the agent names one. */
  mode?: string
  /** Texts of its model have an id. A text without one is a warning of the program itself. */
  namesTexts?: true
  /** The id of the session to resume. */
  resume?: string
}
