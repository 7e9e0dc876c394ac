import { AbstractChat, type ChatInit, type ChatState, type ChatStatus, type UIMessage } from 'ai'

class State implements ChatState<UIMessage> {
  status: ChatStatus = 'ready'
  error: Error | undefined

  constructor(public messages: UIMessage[]) {}

  pushMessage = (message: UIMessage) => void this.messages.push(message)
  popMessage = () => void this.messages.pop()
  replaceMessage = (index: number, message: UIMessage) => {
    this.messages = this.messages.with(index, structuredClone(message))
  }
  snapshot = <T>(value: T) => structuredClone(value)
}

/** What `useChat` is without React. */
export class PageChat extends AbstractChat<UIMessage> {
  constructor({ messages = [], ...init }: ChatInit<UIMessage>) {
    super({ ...init, state: new State(messages) })
  }
}
