import type { MCPClientConfig } from '@ai-sdk/mcp'
import type { EngineContext, McpServer } from '../../../src/plugin-api/index.ts'
import { parseJson } from '../../../src/read/json.ts'
import { lines } from '../../../src/read/lines.ts'

type Transport = Exclude<MCPClientConfig['transport'], { type: unknown }>
type Message = Parameters<Transport['send']>[0]

/** Messages may wait for a server that does not read, up to this size. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024

/** A server in the sandbox that speaks on its stdin and stdout, one message a line. It is dead when `close` resolves. */
export function createStdioTransport(
  { command, args = [], env }: Extract<McpServer, { type: 'stdio' }>,
  context: EngineContext,
  /** Checks a line's value. Throws when it is not a message. */
  parse: (value: unknown) => Message,
): Transport {
  let stdin: WritableStreamDefaultWriter<Uint8Array> | undefined
  let end = () => Promise.resolve()
  let unreadBytes = 0

  const transport: Transport = {
    async start() {
      const child = await context.environment.spawn({
        command: [command, ...args],
        cwd: context.cwd,
        env: { ...context.env, ...env },
        stdin: 'pipe',
        signal: context.signal,
      })
      stdin = child.stdin?.getWriter()
      const reading = Promise.allSettled([read(child.stdout), drain(child.stderr)])
      const exited = child.exited.then(
        () => {},
        () => {},
      )
      void exited.then(() => transport.onclose?.())
      end = async () => {
        child.kill()
        await exited
        await reading
      }
    },
    async send(message) {
      if (!stdin) throw new Error('The MCP server is not running.')
      const bytes = Buffer.from(`${JSON.stringify(message)}\n`)
      unreadBytes += bytes.byteLength
      if (unreadBytes > MAX_UNREAD_BYTES) {
        void end()
        throw new Error('The MCP server was ended: it does not read its input fast enough.')
      }
      await stdin.write(bytes)
      unreadBytes -= bytes.byteLength
    },
    close: () => end(),
  }

  async function read(stdout: ReadableStream<Uint8Array>): Promise<void> {
    for await (const line of lines(stdout)) {
      try {
        transport.onmessage?.(parse(parseJson(line)))
      } catch {
        // Servers print other lines too.
      }
    }
  }
  return transport
}

/** Without a reader, a server that writes much to stderr would block. */
async function drain(stderr: ReadableStream<Uint8Array>): Promise<void> {
  for await (const _ of stderr);
}
