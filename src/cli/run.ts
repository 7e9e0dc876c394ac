import { startChat } from '../core/chat/chat.ts'
import type { Chunk } from '../stream/chunk.ts'
import { type Given, UsageError } from './command-line.ts'
import { printer } from './print.ts'
import { plainRenderer, terminalRenderer } from './render.ts'
import { readChunks } from './server-client.ts'
import { readOneOff } from './temporary/flags.ts'
import { collectResult } from './temporary/result.ts'
import { FAILED, type Session, withSandbox } from './temporary/session.ts'

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
    const show = isJson ? showJson(stdout) : showText(given.has('quiet'))
    const code = await withSandbox({ ...oneOff, agent: oneOff.agent ?? 'coder' }, async session => {
      const code = await reply(session, text, async chunk => {
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

type Show = (chunk: Chunk) => Promise<void>

/** Returns 0 when the reply is complete, 1 when it failed. The session's signal cancels it. */
async function reply({ runtime, caller, sandbox, signal, agent }: Session, text: string, show: Show): Promise<number> {
  const messages = [{ role: 'user' as const, parts: [{ type: 'text', text }] }]
  const request = { sandboxId: sandbox.id, messages, background: false, options: {} }
  const { run, watched } = await startChat(runtime, caller, agent, request, signal)
  const cancel = () => void run.cancel()
  signal.addEventListener('abort', cancel)
  if (signal.aborted) cancel()
  let code = 0
  for await (const chunk of readChunks(new Response(watched?.body))) {
    await show(chunk)
    if (chunk.type === 'error') code = 1
  }
  return code
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
