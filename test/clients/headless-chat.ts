import type * as ai5 from 'ai-5'

/** What the tests use of the package is the same in its versions 5, 6 and 7. */
export type Ai = Pick<
  typeof ai5,
  'AbstractChat' | 'DefaultChatTransport' | 'lastAssistantMessageIsCompleteWithToolCalls' | 'readUIMessageStream'
>
export type UIMessage = ai5.UIMessage

/** What a hook of a front end keeps, without a front end. */
class State implements ai5.ChatState<UIMessage> {
  error: Error | undefined
  status: ai5.ChatStatus = 'ready'
  readonly #watchers = new Set<() => void>()

  constructor(public messages: UIMessage[]) {}

  pushMessage = (message: UIMessage) => {
    this.messages = [...this.messages, message]
    this.#changed()
  }
  popMessage = () => {
    this.messages = this.messages.slice(0, -1)
  }
  replaceMessage = (index: number, message: UIMessage) => {
    this.messages = this.messages.with(index, structuredClone(message))
    this.#changed()
  }
  snapshot = <Thing>(thing: Thing): Thing => structuredClone(thing)

  /** Resolves at the first change after which it is so. */
  until(isSo: () => boolean): Promise<void> {
    return new Promise(resolve => {
      const look = () => {
        if (!isSo()) return
        this.#watchers.delete(look)
        resolve()
      }
      this.#watchers.add(look)
      look()
    })
  }

  #changed(): void {
    for (const look of this.#watchers) look()
  }
}

export interface ChatOptions {
  api: string
  key: string
  /** The chat's: a sandbox's, or any of the client's own. Without one the package makes it. */
  id?: string
  messages?: UIMessage[]
  /** Sent with each message. */
  body?: object
  /** Where to come back to. */
  prepareReconnectToStreamRequest?: ai5.PrepareReconnectToStreamRequest
  sendAutomaticallyWhen?: typeof ai5.lastAssistantMessageIsCompleteWithToolCalls
}

/** A chat as `useChat` keeps one: the package's own, over its own transport. */
export function headlessChat({ AbstractChat, DefaultChatTransport }: Ai, options: ChatOptions) {
  const { api, key, id, messages = [], body, prepareReconnectToStreamRequest, sendAutomaticallyWhen } = options
  const sent: { method: string; url: string }[] = []
  const transport = new DefaultChatTransport<UIMessage>({
    api,
    headers: { authorization: `Bearer ${key}` },
    fetch: ((url: string, init: RequestInit = {}) => {
      sent.push({ method: init.method ?? 'GET', url })
      return fetch(url, init)
    }) as typeof fetch,
    ...(body && { body }),
    ...(prepareReconnectToStreamRequest && { prepareReconnectToStreamRequest }),
  })
  class HeadlessChat extends AbstractChat<UIMessage> {
    readonly kept: State
    /** Its requests. */
    readonly sent = sent
    constructor() {
      const state = new State(messages)
      super({ state, transport, ...(id && { id }), ...(sendAutomaticallyWhen && { sendAutomaticallyWhen }) })
      this.kept = state
    }
    /** Resolves when the last message's text has this word. */
    untilSaid(word: string): Promise<void> {
      return this.kept.until(() => textOf(this.lastMessage).includes(word))
    }
  }
  return new HeadlessChat()
}

export const textOf = (message: UIMessage | undefined): string =>
  (message?.parts ?? []).map(part => (part.type === 'text' ? part.text : '')).join('')
