import {
  describeEngine as describe,
  type EngineUnderTest,
  type SandboxForEngine,
} from '../../src/plugin-suite/engine.ts'
import { bunKit } from '../support/kit.ts'
import { openTestSandbox } from '../support/sandbox.ts'

export type { Scene } from '../../src/plugin-suite/scene.ts'

/** The contract of engines, as tests of bun:test, in an nsjail sandbox. */
export const describeEngine = (
  name: string,
  open: () => EngineUnderTest,
  openSandbox: () => Promise<SandboxForEngine> = openTestSandbox,
): void => describe(bunKit, name, open, openSandbox)
