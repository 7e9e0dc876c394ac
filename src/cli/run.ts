import { createInterface } from 'node:readline/promises'
import { answerApproval, listVisibleApprovals } from '../core/approvals/approvals.ts'
import { type StartedChat, startChat } from '../core/chat/chat.ts'
import type { Chunk } from '../stream/chunk.ts'
import { streamOf } from '../stream/feed.ts'
import { type AskVerdict, askBy, toAnswer } from './approve.ts'
import { type Given, UsageError } from './command-line.ts'
import { printer } from './print.ts'
import { printable } from './printable.ts'
import { plainRenderer, terminalRenderer } from './render.ts'
import { readChunks } from './server-client.ts'
import { readOneOff } from './temporary/flags.ts'
import { collectResult } from './temporary/result.ts'
import { type Session, withSandbox } from './temporary/session.ts'
import { FAILED } from './temporary/stop.ts'

/**
 * Gives one prompt to an agent in a temporary sandbox. Returns 0 when the reply is complete and 1 when it failed; throws
 * an error with an `exitCode` when threadbox could not run it. With --json the last line is the result, in every case.
 */
export async function run(given: Given): Promise<number> {
  const result = collectResult()
  const { stdout } = printer()
  const isJson = given.has('json')
  try {
    const oneOff = readOneOff(given, process.env)
    const text = oneOff.words.join(' ') || (process.stdin.isTTY ? '' : await Bun.stdin.text())
    if (text.trim() === '') throw new UsageError('PROMPT is missing. usage: threadbox run [FLAGS] [PROMPT…]')
    const ask = chooseApprover(given.find('approve'))
    const show = isJson ? showJson(stdout) : showText(given.has('quiet'))
    const code = await withSandbox({ ...oneOff, agent: oneOff.agent ?? 'coder' }, async session => {
      const code = await reply(session, text, ask, async chunk => {
        result.add(chunk)
        await show(chunk)
      })
      // Waits until the reader has taken all output.
      await stdout('')
      session.signal.throwIfAborted()
      return code
    })
    if (isJson) await stdout(`${JSON.stringify(result.end(code))}\n`)
    return code
  } catch (error) {
    const code = error instanceof Error && 'exitCode' in error ? Number(error.exitCode) : FAILED
    if (isJson) await stdout(`${JSON.stringify(result.end(code, error))}\n`)
    throw error
  }
}

/** More than any answer of a model has calls. */
const MAX_ASKED = 1000

type Show = (chunk: Chunk) => Promise<void>

/** Returns 0 when the reply is complete, 1 when it failed. The session's signal cancels it. */
async function reply(session: Session, text: string, ask: AskVerdict, show: Show): Promise<number> {
  const { runtime, caller, sandbox, signal, agent } = session
  const messages = [{ role: 'user' as const, parts: [{ type: 'text', text }] }]
  const request = { sandboxId: sandbox.id, messages, background: false, options: {} }
  const { run, watched } = await startChat(runtime, caller, agent, request, signal)
  let code = 0
  for (let next: StartedChat | undefined = { run, watched }; next; next = await decide(session, ask, run.threadId)) {
    code = await follow(next, signal, show)
  }
  return code
}

async function follow({ run, watched }: StartedChat, signal: AbortSignal, show: Show): Promise<number> {
  const cancel = () => void run.cancel()
  signal.addEventListener('abort', cancel)
  if (signal.aborted) cancel()
  let code = 0
  for await (const chunk of readChunks(new Response(watched && streamOf(watched.feed)))) {
    await show(chunk)
    // Nobody here has the client's tools; a person's decisions lead to another run.
    const isOpen = chunk.type === 'message-metadata' && chunk.messageMetadata.status === 'waiting'
    if (chunk.type === 'error' || isOpen) code = 1
  }
  signal.removeEventListener('abort', cancel)
  return code
}

/** Decides on the calls that wait. Returns the run that goes on then; undefined when nothing waits for a decision. */
async function decide(
  { runtime, caller, signal }: Session,
  ask: AskVerdict,
  threadId: string,
): Promise<StartedChat | undefined> {
  const asked = listVisibleApprovals(runtime, caller, { threadId, status: 'pending', limit: MAX_ASKED }).reverse()
  for (const approval of asked) {
    const verdict = await ask(approval)
    if (signal.aborted) return undefined
    await answerApproval(runtime, caller, approval.id, toAnswer(verdict))
  }
  const run = asked.length > 0 ? runtime.runs.activeOn(threadId) : undefined
  return run && { run, watched: runtime.runs.watch(run) }
}

/** How the calls that wait are decided on. Throws a UsageError for what no person can be asked. */
function chooseApprover(how: string | undefined): AskVerdict {
  const hasTerminal = process.stdin.isTTY && process.stderr.isTTY
  switch (how ?? (hasTerminal ? 'ask' : 'none')) {
    case 'all':
      return async () => 'yes'
    case 'none':
      return async () => 'no'
    case 'ask':
      if (!hasTerminal) throw new UsageError('--approve ask: there is no terminal to ask at; give all or none')
      return askBy(questionAtTerminal)
    default:
      throw new UsageError('--approve: must be all, none or ask')
  }
}

/** Asks on stderr: stdout has the reply. */
async function questionAtTerminal(text: string): Promise<string | undefined> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const left = new Promise<undefined>(resolve => terminal.once('close', () => resolve(undefined)))
  try {
    return await Promise.race([left, terminal.question(printable(text))])
  } finally {
    terminal.close()
  }
}

const showJson =
  (print: (text: string) => Promise<void>): Show =>
  chunk =>
    print(`${JSON.stringify(chunk)}\n`)

function showText(isQuiet: boolean): Show {
  const write = (words: string) => void process.stdout.write(words)
  const complain = (words: string) => void process.stderr.write(words)
  const renderer = process.stdout.isTTY
    ? terminalRenderer(write)
    : plainRenderer(write, complain, isQuiet ? () => {} : complain)
  return async chunk => renderer.show(chunk)
}
