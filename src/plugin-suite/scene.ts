import type { ModelAccess } from '../plugin-api/index.ts'

/** What an engine has to do in a test. */
export type Scene =
  | { does: 'say'; text: string }
  /** Runs the command by a call of the tool Bash. */
  | { does: 'run'; command: string }
  /** Goes on writing for some seconds. */
  | { does: 'say slowly' }
  /** Replies with the number of earlier user messages that it got. */
  | { does: 'remember' }
  | { does: 'fail at once' }
  | { does: 'fail after a word' }
  /** Calls a tool with input that is not JSON, then a tool that does not exist, then replies `recovered`. */
  | { does: 'call badly' }
  | { does: 'wait for its model for ever' }
  | { does: 'wait for ever after a word' }

/**
 * What `threadbox plugin test` needs to test an engine. A plugin's file exports it as `contract`.
 *
 * @example
 * export const contract: EngineContract = {
 *   // An engine whose prompt is a shell script.
 *   stage: scene => (scene.does === 'say' ? `printf '${scene.text}'` : undefined),
 * }
 */
export interface EngineContract {
  /** Returns the prompt that makes the engine play a scene, or undefined when the engine cannot play it. */
  stage(scene: Scene): string | undefined
  /** A model that plays the scenes, for an engine that needs one. */
  openModel?(): ModelAccess
  /** The number of open connections to its model. */
  openCalls?(): number
  close?(): Promise<void>
}
