import { startChat } from '../core/chat.ts'
import { newId } from '../db/id.ts'
import { UsageError } from './flags.ts'
import { readOneOff } from './one-off/flags.ts'
import { withSandbox } from './one-off/session.ts'
import type { LoadPlugins } from './open-runtime.ts'
import { printer } from './print.ts'
import { plainRenderer, terminalRenderer } from './render.ts'
import { readChunks } from './server-client.ts'

const usage =
  'threadbox run [--agent A] [--file LOCAL=INSIDE]… [--env NAME=VALUE]… [--clone URL] [--out INSIDE=LOCAL]… [--json] [FLAGS] PROMPT'

/** Gives one prompt to an agent in a sandbox that is gone after it. 0 when the reply is complete, 1 when it failed. */
export async function run(args: readonly string[], load: LoadPlugins): Promise<number> {
  const oneOff = readOneOff(args, process.env)
  const { words, json, agent = 'coder' } = oneOff
  const text = words.join(' ') || (process.stdin.isTTY ? '' : await Bun.stdin.text())
  if (text.trim() === '') throw new UsageError(`usage: ${usage}`)
  return await withSandbox({ ...oneOff, agent }, load, async ({ runtime, caller, sandbox, signal, agent }) => {
    const { stdout } = printer()
    const write = (words: string) => void process.stdout.write(words)
    const renderer = process.stdout.isTTY
      ? terminalRenderer(write)
      : plainRenderer(write, words => void process.stderr.write(words))
    const messages = [{ id: newId('msg'), role: 'user' as const, parts: [{ type: 'text', text }] }]
    const request = { sandboxId: sandbox.id, messages, background: false, options: {} }
    const reply = await startChat(runtime, caller, agent, request, signal)
    const cancel = () => void reply.cancel()
    signal.addEventListener('abort', cancel)
    if (signal.aborted) cancel()
    let code = 0
    for await (const chunk of readChunks(new Response(runtime.runs.watch(reply).body))) {
      if (json) await stdout(`${JSON.stringify(chunk)}\n`)
      else renderer.show(chunk)
      if (chunk.type === 'error') code = 1
    }
    // All that was written has been taken.
    await stdout('')
    signal.throwIfAborted()
    return code
  })
}
