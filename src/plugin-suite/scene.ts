import type { Engine, ModelAccess } from '../plugin-api/index.ts'

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
  /** Makes these calls in one answer, then says what it was told of them. For engines that support what they need. */
  | { does: 'call'; calls: readonly SceneCall[] }
  /** Plays in a turn that goes on after calls. It makes these calls again when it is asked to, then says what it was told of them. */
  | { does: 'go on'; calls: readonly SceneCall[] }
  /** Runs the command by a call of the tool Bash, then says the word if the user has said it meanwhile, else `nothing`. */
  | { does: 'heed'; command: string; word: string }
  /** Writes for a second. Asked again, it says the word if the user has said it meanwhile, else `nothing`. */
  | { does: 'heed at its end'; word: string }

/** A call of the tool Bash, with its `command`, or of a tool of the client. */
export interface SceneCall {
  name: string
  input: Readonly<Record<string, unknown>>
}

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
  /** Makes an engine that knows nothing of what the first one did, as a restarted server has it. */
  reopen?(): Engine
  close?(): Promise<void>
}

export interface EngineUnderTest extends EngineContract {
  engine: Engine
}
