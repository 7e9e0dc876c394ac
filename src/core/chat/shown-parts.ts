import type { EngineEvent, MessagePart } from '../../plugin-api/index.ts'
import { isObject, objectOf } from '../../read/json.ts'
import type { TurnEvents } from './turn-events.ts'

/** Tools that write a file, by the input that names it. */
const pathOf: Readonly<Record<string, string>> = {
  Write: 'file_path',
  Edit: 'file_path',
  MultiEdit: 'file_path',
  NotebookEdit: 'notebook_path',
}

interface Call {
  name: string
  input: Readonly<Record<string, unknown>>
}

/**
 * Passes a turn on with what its tools have made for people: images as files, pages as sources, the list of tasks and the list
 * of changed files as data. `before`: the parts of the reply that the turn goes on with.
 */
export async function* withShownParts(events: TurnEvents, before: readonly MessagePart[]): TurnEvents {
  const calls = new Map<string, Call>()
  for (const { type, toolCallId, input } of before) {
    if (typeof toolCallId === 'string')
      calls.set(toolCallId, { name: type.slice('tool-'.length), input: objectOf(input) ?? {} })
  }
  const changed = new Set(before.flatMap(({ type, data }) => (type === CHANGED_FILES ? listPaths(data) : [])))
  try {
    for (let step = await events.next(); ; step = await events.next()) {
      if (step.done) return step.value
      const event = step.value
      yield event
      if (event.type === 'tool-call') calls.set(event.callId, { name: event.name, input: objectOf(event.input) ?? {} })
      if (event.type !== 'tool-result') continue
      const call = calls.get(event.callId)
      calls.delete(event.callId)
      if (event.error !== undefined) continue
      yield* toFiles(event.output)
      if (call) yield* toParts(call, event.callId, changed)
    }
  } finally {
    await events.return({ status: 'cancelled' })
  }
}

const CHANGED_FILES = 'data-changed-files'

function* toParts({ name, input }: Call, callId: string, changed: Set<string>): Generator<EngineEvent> {
  if (name === 'TodoWrite' && Array.isArray(input.todos)) {
    yield { type: 'data', name: 'todos', id: 'todos', data: { todos: input.todos } }
  }
  if (name === 'WebFetch' && isPage(input.url)) yield { type: 'source', id: callId, url: input.url }
  const path = input[pathOf[name] ?? '']
  if (typeof path !== 'string' || changed.has(path)) return
  changed.add(path)
  yield { type: 'data', name: 'changed-files', id: 'changed-files', data: { paths: [...changed] } }
}

/** A program names any address. Pages show a source as a link, where one with a script would run. */
const isPage = (url: unknown): url is string =>
  typeof url === 'string' && ['http:', 'https:'].includes(URL.parse(url)?.protocol ?? '')

/** The images of a tool's output. One of another type, as a page's, would be more than an image where it is shown. */
function* toFiles(output: unknown): Generator<EngineEvent> {
  for (const part of Array.isArray(output) ? output : []) {
    const { type, mediaType, data } = isObject(part) ? part : {}
    if (type !== 'image' || typeof mediaType !== 'string' || typeof data !== 'string') continue
    if (!/^image\/[a-z\d.+-]{1,100}$/i.test(mediaType)) continue
    yield { type: 'file', mediaType, url: `data:${mediaType};base64,${data}` }
  }
}

const listPaths = (data: unknown): string[] => {
  const paths = objectOf(data)?.paths
  return Array.isArray(paths) ? paths.filter(path => typeof path === 'string') : []
}
