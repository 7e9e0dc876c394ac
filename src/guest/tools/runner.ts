import { messageOf } from '../../errors.ts'
import { isObject } from '../../read/json.ts'
import { type Bundle, loadBundle } from './bundle.ts'
import { type FromRunner, failure, type ToolResult, type ToRunner } from './messages.ts'

/** Loads a bundle and runs its tools for the process that started this one, until that is gone. */
export async function serveRunner(path: string): Promise<void> {
  const send = (message: FromRunner) => void process.send?.(message)
  const calls = new Map<number, AbortController>()
  process.on('disconnect', () => process.exit(0))
  // A promise that a tool has forgotten is no reason to end the others.
  process.on('unhandledRejection', error => console.error(error))
  let bundle: Bundle
  try {
    bundle = await loadBundle(path)
  } catch (error) {
    console.error(error)
    return send({ failed: messageOf(error) })
  }
  process.on('message', (message: ToRunner) => {
    if ('cancel' in message) return calls.get(message.cancel)?.abort()
    const { id, tool, input } = message
    const abort = new AbortController()
    calls.set(id, abort)
    void runTool(bundle, tool, input, abort.signal).then(result => {
      calls.delete(id)
      send({ id, result })
    })
  })
  const tools = [...bundle.tools.values()].map(({ name, description, inputSchema }) => ({
    name,
    description,
    inputSchema,
  }))
  send({ tools, description: bundle.description })
}

/** Never rejects: what a tool throws is its result. */
async function runTool(bundle: Bundle, name: string, input: unknown, signal: AbortSignal): Promise<ToolResult> {
  const tool = bundle.tools.get(name)
  if (!tool) return failure(`There is no tool ${name}.`)
  try {
    return toResult(await tool.execute(await tool.parse(input), { env: { ...process.env }, signal }))
  } catch (error) {
    return failure(messageOf(error))
  }
}

/** What a tool returns is to be `{content, isError?}`; a text or a value is taken as well. */
function toResult(value: unknown): ToolResult {
  if (isObject(value) && Array.isArray(value.content)) {
    return { content: value.content.filter(isObject), ...(value.isError === true && { isError: true }) }
  }
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '')
  return { content: [{ type: 'text', text }] }
}
