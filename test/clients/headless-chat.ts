import type * as ai5 from 'ai-5'

/** What the tests use of the package is the same in its versions 5, 6 and 7. */
export type Ai = Pick<typeof ai5, 'AbstractChat' | 'DefaultChatTransport' | 'readUIMessageStream'>
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
  /** The sandbox's. */
  id: string
  messages?: UIMessage[]
  /** Sent with each message. */
  body?: object
}

/** A chat as `useChat` keeps one: the package's own, over its own transport. */
export function headlessChat({ AbstractChat, DefaultChatTransport }: Ai, options: ChatOptions) {
  const { api, key, id, messages = [], body = {} } = options
  const transport = new DefaultChatTransport<UIMessage>({ api, body, headers: { authorization: `Bearer ${key}` } })
  class HeadlessChat extends AbstractChat<UIMessage> {
    readonly kept: State
    constructor() {
      const state = new State(messages)
      super({ id, state, transport })
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
