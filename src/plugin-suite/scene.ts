import type { ModelAccess } from '../plugin-api/index.ts'

/** What an engine is to do in a test. */
export type Scene =
  | { does: 'say'; text: string }
  /** Runs it as a Bash call. */
  | { does: 'run'; command: string }
  /** Says words for seconds. */
  | { does: 'say slowly' }
  /** Tells how many earlier user messages it was given. */
  | { does: 'remember' }
  | { does: 'fail at once' }
  | { does: 'fail after a word' }
  /** Calls a tool with what is no JSON, then one that is not there, then says `recovered`. */
  | { does: 'call badly' }
  | { does: 'wait for its model for ever' }
  | { does: 'wait for ever after a word' }

/** How an engine is put through the contract suite. A plugin's file exports it as `contract`. */
export interface EngineContract {
  /** Prepares a scene. Returns the prompt that brings it about, or undefined when the engine cannot do such a thing. */
  stage(scene: Scene): string | undefined
  /** A model that plays the scenes, for an engine that needs one. */
  openModel?(): ModelAccess
  /** Connections to its model that are still open; 0 when it has none. */
  openCalls?(): number
  close?(): Promise<void>
}
