import { createInterface } from 'node:readline/promises'
import { version } from '../../package.json'
import { type AskVerdict, askBy, describeAsked, toAnswer } from './approve.ts'
import { type ChatCommand, chatHelp, findChatCommand } from './chat-commands.ts'
import { type Given, UsageError } from './command-line.ts'
import { findLastThread, rememberThread } from './last-thread.ts'
import { printable } from './printable.ts'
import { plainRenderer, type Renderer, terminalRenderer } from './render.ts'
import { findServer, type Place, type Reply, type ServerClient } from './server-client.ts'

/** How long a cancel may take once the user has left. */
const LEAVE_WITHIN_MS = 5000

interface Conversation {
  server: ServerClient
  agent: string
  place: Place | undefined
  /** Prints only the reply's text. */
  isQuiet: boolean
  /** Present when there is a person to decide on calls. */
  ask?: AskVerdict
}

/**
 * Talks to an agent of a running server. In a terminal it goes on with the last thread; Ctrl-C cancels the reply, and
 * leaves when there is none. With a message, or input from a pipe, it prints one reply and ends. False when that failed.
 */
export async function chat(given: Given): Promise<boolean> {
  const [agent = 'echo', ...words] = given.words
  const server = findServer(given)
  const [sandboxId, threadId] = [given.find('sandbox'), given.find('thread')]
  if ((sandboxId === undefined) !== (threadId === undefined))
    throw new UsageError('--sandbox and --thread: each wants the other')
  const named = sandboxId && threadId ? { sandboxId, threadId } : undefined
  const conversation: Conversation = { server, agent, place: named, isQuiet: given.has('quiet') }

  const isInteractive = words.length === 0 && process.stdin.isTTY
  if (!isInteractive) return await say(conversation, words.join(' ') || (await Bun.stdin.text()))
  if (!named && !given.has('new')) conversation.place = await findLastThread(server.url, agent)
  if (!conversation.isQuiet) console.log(banner(conversation))
  await showHistory(conversation)
  await converse(conversation)
  return true
}

async function converse(conversation: Conversation): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  let isTalking = false
  let isCancelling = false
  let cancelled: Promise<void> | undefined
  terminal.on('SIGINT', () => {
    if (!isTalking || isCancelling || !conversation.place) terminal.close()
    else {
      isCancelling = true
      cancelled = conversation.server
        .cancel(conversation.agent, conversation.place)
        .catch(error => console.error(error.message))
    }
  })
  const left = new Promise<undefined>(resolve => terminal.once('close', () => resolve(undefined)))
  conversation.ask = askBy(text => Promise.race([left, terminal.question(printable(text))]))
  for (;;) {
    const text = await Promise.race([left, terminal.question(`${conversation.agent} › `)])
    if (text === undefined) break
    if (text.trim() === '') continue
    const command = findChatCommand(text)
    if (command === 'exit') break
    if (command) {
      obey(command, conversation)
      continue
    }
    isTalking = true
    isCancelling = false
    const answered = say(conversation, text).catch(error => console.error(error.message))
    await Promise.race([answered, left])
    isTalking = false
  }
  // After a second Ctrl-C, the cancel of the first one must still arrive.
  if (cancelled) await Promise.race([cancelled, Bun.sleep(LEAVE_WITHIN_MS)])
  terminal.close()
  console.log()
}

const banner = ({ server, agent, place }: Conversation): string =>
  printable(
    `threadbox ${version}: ${agent} in ${place?.sandboxId ?? 'a new sandbox'} at ${server.url}. /help shows commands.`,
  )

function obey(command: Exclude<ChatCommand, 'exit'>, conversation: Conversation): void {
  const { place } = conversation
  if (command === 'help') console.log(chatHelp())
  else if (command === 'new') {
    conversation.place = undefined
    console.log('The next message begins a new thread in a new sandbox.')
  } else if (!place) console.log('The first message makes a sandbox.')
  else
    console.log(
      printable(`sandbox ${place.sandboxId}, thread ${place.threadId}\nIts shell: threadbox shell ${place.sandboxId}`),
    )
}

/** Shows the reply as it comes. False when it failed. */
async function say(conversation: Conversation, text: string): Promise<boolean> {
  const { server, agent, isQuiet } = conversation
  const write = (words: string) => void process.stdout.write(words)
  const renderer = process.stdout.isTTY
    ? terminalRenderer(write)
    : plainRenderer(write, words => void process.stderr.write(words), isQuiet ? () => {} : write)
  const { chunks, runId, ...place } = await server.chat(agent, text, conversation.place)
  conversation.place = place
  await rememberThread(server.url, agent, place)
  for (let reply: Reply | undefined = { chunks, runId, ...place }; reply; ) {
    const end = await show(reply, renderer)
    if (end !== 'waiting') return end === 'completed'
    if (!(await decide(conversation, place))) return false
    reply = await server.follow(agent, place, reply.runId)
  }
  console.error('The agent waits for a tool of another client.')
  return false
}

async function show({ chunks }: Reply, renderer: Renderer): Promise<'completed' | 'waiting' | 'failed'> {
  let end: 'completed' | 'waiting' | 'failed' = 'completed'
  for await (const chunk of chunks) {
    renderer.show(chunk)
    if (chunk.type === 'message-metadata' && chunk.messageMetadata.status === 'waiting') end = 'waiting'
    if (chunk.type === 'error') end = 'failed'
  }
  return end
}

/** Asks about each call that waits. False when there is nobody to ask. */
async function decide({ server, ask }: Conversation, place: Place): Promise<boolean> {
  for (const call of await server.listAskedCalls(place)) {
    if (!ask) {
      console.error(printable(`${describeAsked(call)}\nThis waits for an approval: POST /v1/approvals/${call.id}`))
      continue
    }
    await server.answerAskedCall(call.id, toAnswer(await ask(call)))
  }
  return ask !== undefined
}

async function showHistory(conversation: Conversation): Promise<void> {
  const { server, place, agent } = conversation
  if (!place) return
  const messages = await server.findMessages(place)
  // The thread was deleted meanwhile: the next message starts a new one.
  if (!messages) conversation.place = undefined
  for (const { role, content } of messages ?? []) {
    console.log(printable(role === 'user' ? `${agent} › ${content}` : content))
  }
}
