import { setTimeout as wait } from 'node:timers/promises'
import { type CommandResult, runCommand } from '../../src/environment/run-command.ts'
import { messageOf } from '../../src/errors.ts'
import type {
  Engine,
  EngineContext,
  EngineEnd,
  EngineEvent,
  Plugin,
  StoredMessage,
  Turn,
} from '../../src/plugin-api/index.ts'

const SLOW_DELTA_MS = 50
const COMMAND_TIMEOUT_MS = 600_000

/**
 * Answers with the user's own text, word by word. A line `$ COMMAND` runs in the sandbox as a Bash tool call,
 * `/slow N` gives N words 50 ms apart, `/fail` fails. No model and no network: words are its tokens.
 */
export const echo: Plugin = { name: 'echo', engine: () => engine }

const engine: Engine = {
  name: 'echo',
  supports: ['steering'],
  async *run(turn, context) {
    let inputTokens = 0
    let outputTokens = 0
    for (const message of [...turn.history, ...turn.prompt]) inputTokens += splitWords(toText(message)).length
    const events = answer(turn, context)
    for (;;) {
      if (context.signal.aborted) break
      const { value, done } = await events.next()
      if (done) {
        yield { type: 'usage', inputTokens, outputTokens }
        return context.signal.aborted ? { status: 'cancelled' } : value
      }
      if (value.type === 'text') outputTokens += 1
      yield value
    }
    yield { type: 'usage', inputTokens, outputTokens }
    return { status: 'cancelled' }
  },
}

async function* answer({ prompt }: Turn, context: EngineContext): AsyncGenerator<EngineEvent, EngineEnd> {
  const { steering } = context
  // Text continues in one part until a tool call begins another.
  let part = 0
  let isTalking = false
  let blank = ''
  const lines = splitLines(prompt.map(toText).join('\n'))
  for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
    const [, command] = /^\$ (.+)/.exec(line) ?? []
    const [, count] = /^\/slow (\d{1,6})\s*$/.exec(line) ?? []
    if (line.trim() === '') {
      blank += line
      continue
    }
    isTalking = command === undefined
    if (command) yield* runTool(`call-${++part}`, command, context)
    else if (count) yield* slowly(`text-${part}`, Number(count), context.signal)
    else if (/^\/fail\s*$/.test(line)) return failed('The echo engine fails because it was asked to.')
    else for (const delta of splitWords(blank + line)) yield { type: 'text', id: `text-${part}`, delta }
    blank = ''
    // Each line is a step of the work: what the user says meanwhile comes after it.
    for (const message of context.signal.aborted ? [] : (steering?.take() ?? [])) {
      yield { type: 'steered', messageId: message.id }
      part += 1
      lines.unshift(...splitLines(`${toText(message)}\n`))
    }
  }
  if (isTalking && blank) yield { type: 'text', id: `text-${part}`, delta: blank }
  return { status: 'completed' }
}

async function* runTool(callId: string, command: string, context: EngineContext): AsyncGenerator<EngineEvent> {
  const { environment, cwd, env, signal } = context
  yield { type: 'tool-call', callId, name: 'Bash', input: { command } }
  try {
    const result = await runCommand(environment, { command, cwd, env, signal, timeoutMs: COMMAND_TIMEOUT_MS })
    yield { type: 'tool-result', callId, output: formatOutput(result) }
  } catch (error) {
    if (!signal.aborted) yield { type: 'tool-result', callId, output: null, error: messageOf(error) }
  }
}

async function* slowly(id: string, count: number, signal: AbortSignal): AsyncGenerator<EngineEvent> {
  for (let index = 1; index <= count && !signal.aborted; index++) {
    yield { type: 'text', id, delta: `${index} ` }
    // An abort ends the loop by its condition.
    await wait(SLOW_DELTA_MS, undefined, { signal }).catch(() => {})
  }
}

/** What a terminal would show, and then the exit code unless it is 0. */
const formatOutput = ({ stdout, stderr, exitCode, truncated }: CommandResult): string =>
  [stdout, stderr, truncated && '(output was cut)\n', exitCode !== 0 && `exit code ${exitCode}`]
    .filter(Boolean)
    .join('')

const failed = (message: string): EngineEnd => ({ status: 'failed', error: { code: 'internal_error', message } })

const toText = ({ parts }: StoredMessage): string =>
  parts.flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : [])).join('\n')

/** Lines keep their line breaks. */
const splitLines = (text: string): string[] => text.split(/(?<=\n)/)

/** Words keep the space around them: joined, they are the text again. */
function splitWords(text: string): string[] {
  const words = text.split(/(?<=\S)(?=\s)/)
  // The space at the end belongs to the last word.
  const last = words.pop() ?? ''
  if (last.trim() !== '') return [...words, last]
  const word = words.pop()
  return word === undefined ? [] : [...words, word + last]
}
