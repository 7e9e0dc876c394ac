import type { EngineContext, Environment } from '../plugin-api/index.ts'
import type { Kit } from './kit.ts'
import type { EngineUnderTest, Scene } from './scene.ts'
import type { TurnInit, TurnResult } from './turn.ts'

/** What the parts of the engines' contract share: one engine, in one sandbox. */
export interface Stage {
  kit: Kit
  subject: EngineUnderTest
  /** Defines a test of a scene, unless the engine cannot play it. Starts without what the test before has left. */
  scene(title: string, what: Scene, run: (prompt: string) => Promise<void>): void
  play(
    prompt: string,
    init?: Partial<Omit<TurnInit, 'prompt'>> & { context?: Partial<EngineContext> },
  ): Promise<TurnResult>
  /** The directory in which the engine works. */
  inside(): Environment
  /** What a command inside prints. */
  shell(command: string): Promise<string>
}
