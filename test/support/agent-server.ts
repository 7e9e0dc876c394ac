import { afterAll } from 'bun:test'
import { type ModelServer, startModelServer, type Wire } from './model-server.ts'
import { type Server, type ServerOptions, useServer } from './server.ts'
import { readChunks } from './sse.ts'

/** How an operator points a server at a model. */
export interface ModelSetup {
  wire: Wire
  /** `provider/model`. */
  model: string
  env(url: string, key: string): Record<string, string>
  flags(url: string): string[]
}

const price = JSON.stringify({ 'local/some': { input: 1, output: 2, cacheRead: 0.5 } })

/** One for each wire. */
export const modelSetups: readonly ModelSetup[] = [
  {
    wire: 'anthropic',
    model: 'anthropic/claude-sonnet-4-6',
    env: (url, key) => ({ ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: url }),
    flags: () => [],
  },
  {
    wire: 'openai-responses',
    model: 'openai/gpt-5.2',
    env: (url, key) => ({ OPENAI_API_KEY: key, OPENAI_BASE_URL: url }),
    flags: () => [],
  },
  {
    wire: 'openai-chat',
    model: 'local/some',
    env: (_, key) => ({ THREADBOX_MODEL_KEY: key }),
    flags: url => ['--model', 'local/some', '--model-url', url, '--prices', price],
  },
]

/** Gemini's own API beside the one that is like OpenAI's. */
export const geminiSetup: ModelSetup = {
  wire: 'openai-chat',
  model: 'gemini/gemini-2.5-flash',
  env: (url, key) => ({ GEMINI_API_KEY: key, GEMINI_BASE_URL: url.replace(/\/v1$/, '/v1beta/openai') }),
  flags: () => [],
}

export interface Place {
  sandboxId: string
  threadId: string
}

export interface ChatAnswer extends Place {
  runId: string
  response: Response
}

/** A server with the agent `coder` on a fake model that is reached over HTTP. */
export interface AgentServer {
  server: Server
  model: ModelServer
  /** The provider's key: what must never be seen. */
  modelKey: string
  /** Sends a message. Throws when it is refused. */
  chat(text: string, fields?: object, agent?: string): Promise<ChatAnswer>
  /** A message and all that is streamed in reply. */
  said(text: string, fields?: object, agent?: string): Promise<Omit<ChatAnswer, 'response'> & { chunks: any[] }>
  threadOf(place: Place): Promise<any>
}

/** For all tests of the file, or of the `describe`, that calls this. */
export function useAgentServer(setups: readonly ModelSetup[] = modelSetups.slice(0, 1), options: ServerOptions = {}) {
  const model = startModelServer()
  const modelKey = `sk-real-${crypto.randomUUID()}`
  const server = useServer(optionsOf(setups, model, modelKey, options))
  afterAll(() => model.stop())
  return agentServer(server, model, modelKey)
}

/** What a server needs to reach a fake model. */
export function optionsOf(
  setups: readonly ModelSetup[],
  model: ModelServer,
  key: string,
  { flags = [], env = {}, ...more }: ServerOptions = {},
): ServerOptions {
  const url = model.access('anthropic').baseUrl
  return {
    ...more,
    flags: [...setups.flatMap(setup => setup.flags(url)), ...flags],
    env: Object.assign({}, ...setups.map(setup => setup.env(url, key)), env),
  }
}

export function agentServer(server: Server, model: ModelServer, modelKey: string): AgentServer {
  const chat: AgentServer['chat'] = async (text, fields = {}, agent = 'coder') => {
    const body = { messages: [{ role: 'user', parts: [{ type: 'text', text }] }], ...fields }
    const response = await server.request('POST', `/v1/chat/${agent}`, { body })
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
    const id = (name: string) => response.headers.get(`x-${name}-id`) ?? ''
    return { sandboxId: id('sandbox'), threadId: id('thread'), runId: id('run'), response }
  }
  return {
    ...{ server, model, modelKey, chat },
    async said(text, fields, agent) {
      const { response, ...ids } = await chat(text, fields, agent)
      return { ...ids, chunks: await readChunks(response) }
    },
    threadOf: async ({ sandboxId, threadId }) =>
      (await server.ask('GET', `/v1/sandboxes/${sandboxId}/threads/${threadId}`)).body,
  }
}

export const bash = (command: string, more: object = {}) => ({ name: 'Bash', input: { command, ...more } })

export const metadataIn = (chunks: readonly any[]): any =>
  chunks.find(({ type }) => type === 'message-metadata')?.messageMetadata
