import type { EngineEnd, EngineEvent } from '../../../src/plugin-api/index.ts'
import { type JsonObject, objectOf } from '../../../src/read/json.ts'
import { type Conversation, failed } from '../conversation.ts'
import type { Program } from '../program.ts'
import type { PromptPart } from '../prompt.ts'
import { createReader } from './reader.ts'
import { createSteered } from './steered.ts'

export interface ClaudeConversation extends Conversation {
  /** Resolves when the program accepts messages: to undefined, or to the reason why it does not. */
  ready: Promise<string | undefined>
}

/** How long after an answer the program may need to begin another with what it was given meanwhile. */
const BEGIN_MS = 5000

/** The id of the first control request. */
const INITIALIZE = 'initialize'

export function createConversation(program: Program, sessionId: string): ClaudeConversation {
  const ready = Promise.withResolvers<string | undefined>()
  let answer: { take(message: JsonObject): void; end(end: EngineEnd): void } | undefined
  let requests = 0
  const steered = createSteered()

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
        let last: EngineEnd | undefined
        let late: ReturnType<typeof setTimeout> | undefined
        answer = {
          take(message) {
            clearTimeout(late)
            const messageId = steered.read(message)
            if (messageId !== undefined) emit({ type: 'steered', messageId })
            const end = reader.read(message)
            if (end && (end.status !== 'completed' || !steered.isWaiting)) return this.end(end)
            last = end ?? last
            // It answers what came too late for this answer in another one, by itself.
            if (last && steered.isWaiting) late = setTimeout(end => this.end(end), BEGIN_MS, last)
          },
          end(end) {
            clearTimeout(late)
            answer = undefined
            resolve(end)
          },
        }
        if (!program.isAlive) answer.end(failed('agent_failed', 'Claude Code is not running.'))
        program.send(toUserMessage(prompt))
      }),
    steer: (messageId, prompt) => program.send({ ...toUserMessage(prompt), uuid: steered.add(messageId) }),
    get hasUntaken() {
      return steered.isWaiting
    },
    interrupt: () => request('interrupt'),
  }
}

const toUserMessage = (prompt: readonly PromptPart[]) => ({
  type: 'user',
  message: { role: 'user', content: prompt.map(toBlock) },
})

const toBlock = (part: PromptPart) =>
  part.type === 'text'
    ? part
    : { type: 'image', source: { type: 'base64', media_type: part.mediaType, data: part.data } }
