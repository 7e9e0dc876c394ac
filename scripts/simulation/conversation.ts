import { headers } from '../benchmarks/server.ts'

/** One message and its reply. */
export interface Sample {
  /** The time at which it was sent. */
  atMs: number
  /** True when it made a sandbox. */
  isFirst: boolean
  /** The time to the first chunk of the reply. */
  firstChunkMs: number
  /** The error, if there was one. */
  problem?: string
}

const TEXT = 'word '.repeat(40).trim()
/** One message in this many runs a command in the sandbox. */
const COMMAND_EVERY = 3

/** Sends a conversation's messages one after the other, each when its reply has ended and the user has thought, until it is over. */
export async function converse(
  url: string,
  messages: number,
  thinkMs: () => number,
  isOver: () => boolean,
  record: (sample: Sample) => void,
): Promise<void> {
  let place: { sandboxId?: string; threadId?: string } = {}
  for (let index = 0; index < messages; index++) {
    if (index > 0) await Bun.sleep(thinkMs())
    if (isOver()) return
    const text = index % COMMAND_EVERY === COMMAND_EVERY - 1 ? `$ true\n${TEXT}` : TEXT
    const atMs = performance.now()
    const sample = { atMs, isFirst: index === 0, firstChunkMs: Number.NaN }
    try {
      const { firstChunkMs, ...made } = await say(url, text, place, atMs)
      place = made
      record({ ...sample, firstChunkMs })
    } catch (error) {
      record({ ...sample, problem: error instanceof Error ? error.message : String(error) })
      return
    }
  }
}

async function say(url: string, text: string, place: object, atMs: number) {
  const body = JSON.stringify({ ...place, messages: [{ role: 'user', parts: [{ type: 'text', text }] }] })
  const response = await fetch(`${url}/v1/chat/echo`, { method: 'POST', headers, body })
  if (!response.ok) throw new Error(`${response.status} ${(await response.text()).slice(0, 200)}`)
  let firstChunkMs = Number.NaN
  let end = ''
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) {
    if (Number.isNaN(firstChunkMs)) firstChunkMs = performance.now() - atMs
    end = (end + decoder.decode(bytes, { stream: true })).slice(-2000)
  }
  if (!end.includes('[DONE]') || end.includes('"type":"error"'))
    throw new Error(`the reply broke off: ${end.slice(-200)}`)
  return {
    firstChunkMs,
    sandboxId: response.headers.get('x-sandbox-id') ?? '',
    threadId: response.headers.get('x-thread-id') ?? '',
  }
}
