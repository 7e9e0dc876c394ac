import { afterAll, beforeAll, beforeEach } from 'bun:test'
import { aiSdk } from '../../../plugins/ai-sdk/index.ts'
import type { EngineEvent, TurnOptions } from '../../../src/plugin-api/index.ts'
import { startModelServer, type Wire } from '../../support/model-server.ts'
import { openTestSandbox, type TestSandbox } from '../../support/sandbox.ts'
import { playTurn, type TurnInit, type TurnResult } from '../../support/turn.ts'
import { engineOf } from '../engine-of.ts'

export interface PlayInit extends Partial<TurnInit> {
  wire?: Wire
  options?: TurnOptions
}

/** A fake model and a real sandbox, empty before each test, for a file of tests. */
export function openStage() {
  const model = startModelServer()
  const engine = engineOf(aiSdk)
  let sandbox: TestSandbox
  beforeAll(async () => {
    sandbox = await openTestSandbox()
  }, 60_000)
  afterAll(async () => {
    await sandbox.close()
    await model.stop()
  }, 60_000)
  beforeEach(async () => {
    model.requests.length = 0
    await sandbox.shell('rm -rf /home/user/* /home/user/.git /tmp/*')
  })
  return {
    model,
    shell: (command: string) => sandbox.shell(command),
    put: (path: string, content: string | Uint8Array) => sandbox.environment.files.write(path, Buffer.from(content)),
    play({ wire = 'anthropic', options = {}, context, ...rest }: PlayInit = {}): Promise<TurnResult> {
      const own = { openModel: () => model.access(wire), options, ...context }
      return playTurn({ engine, environment: sandbox.environment, prompt: 'Go.', ...rest, context: own })
    },
    /** What the first request has as its system prompt. */
    system: (): string => JSON.stringify(model.requests[0]?.body.system),
  }
}

export const bash = (command: string, id?: string) => ({ name: 'Bash', input: { command }, ...(id && { id }) })

export const codesOf = (events: EngineEvent[]): string[] =>
  events.flatMap(event => (event.type === 'notice' ? [event.code] : []))
