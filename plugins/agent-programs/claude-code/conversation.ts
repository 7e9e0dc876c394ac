import type { EngineEnd, EngineEvent } from '../../../src/plugin-api/index.ts'
import { type JsonObject, objectOf } from '../../../src/read/json.ts'
import { type Conversation, failed } from '../conversation.ts'
import type { Program } from '../program.ts'
import type { PromptPart } from '../prompt.ts'
import { createReader } from './reader.ts'

export interface ClaudeConversation extends Conversation {
  /** Resolves when the program accepts messages: to undefined, or to the reason why it does not. */
  ready: Promise<string | undefined>
}

/** The id of the first control request. */
const INITIALIZE = 'initialize'

export function createConversation(program: Program, sessionId: string): ClaudeConversation {
  const ready = Promise.withResolvers<string | undefined>()
  let answer: { take(message: JsonObject): void; end(end: EngineEnd): void } | undefined
  let requests = 0

  const request = (subtype: string, id = `${subtype}-${++requests}`) =>
    program.send({ type: 'control_request', request_id: id, request: { subtype } })

  program.onMessage = message => {
    const response = message.type === 'control_response' ? objectOf(message.response) : undefined
    if (response?.request_id === INITIALIZE) {
      ready.resolve(response.subtype === 'success' ? undefined : String(response.error))
    }
    answer?.take(message)
  }
  void program.ended.then(reason => {
    ready.resolve(reason)
    answer?.end(failed('agent_failed', `Claude Code ended before its answer did. ${reason}`))
  })
  request(INITIALIZE, INITIALIZE)

  return {
    program,
    sessionId,
    announcesCalls: true,
    ready: ready.promise,
    ask: (prompt, emit: (event: EngineEvent) => void) =>
      new Promise(resolve => {
        const reader = createReader(emit)
        answer = {
          take(message) {
            const end = reader.read(message)
            if (end) this.end(end)
          },
          end(end) {
            answer = undefined
            resolve(end)
          },
        }
        if (!program.isAlive) answer.end(failed('agent_failed', 'Claude Code is not running.'))
        program.send({ type: 'user', message: { role: 'user', content: prompt.map(toBlock) } })
      }),
    interrupt: () => request('interrupt'),
  }
}

const toBlock = (part: PromptPart) =>
  part.type === 'text'
    ? part
    : { type: 'image', source: { type: 'base64', media_type: part.mediaType, data: part.data } }
