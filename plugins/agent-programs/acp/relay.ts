import { runCommand } from '../../../src/environment/run-command.ts'
import type { Environment } from '../../../src/plugin-api/index.ts'
import { isObject, type JsonObject, parseJson } from '../../../src/read/json.ts'
import { lines } from '../../../src/read/lines.ts'

/** A way from programs in a sandbox to this server, over named pipes: it needs a shell and no network. */
export interface Relay {
  /** In the sandbox, the process of this command passes lines of JSON on. Several may run at once. */
  command: string[]
  /** Ends it. Never rejects. */
  close(): Promise<void>
}

/** Tells of its own two pipes by a line in the first one, and joins its input and output to them. */
const CONNECT = `
c=$(mktemp -d "$1/XXXXXXXX") && mkfifo "$c/up" "$c/down" && echo "\${c##*/}" > "$1/calls" || exit 1
cat "$c/down" & exec cat > "$c/up"`

/** The other end of one connection. It ends when the program's end does. */
const ACCEPT = `exec 3<&0; cat <&3 > "$1/down" & cat "$1/up"; kill $!`

/** @param onMessage gets each message of each connection, and a way to answer there */
export async function openRelay(
  environment: Environment,
  onMessage: (message: JsonObject, reply: (message: object) => void) => void,
): Promise<Relay> {
  const make = 'd=$(mktemp -d /tmp/.relay-XXXXXXXX) && mkfifo "$d/calls" && echo "$d"'
  const directory = (await runCommand(environment, { command: ['sh', '-c', make] })).stdout.trim()
  if (!directory) throw new Error("The client's tools cannot be brought into the sandbox: there is no place in /tmp.")
  const listening = await environment.spawn({
    command: ['sh', '-c', 'while cat "$1/calls"; do :; done', 'sh', directory],
  })

  async function accept(name: string): Promise<void> {
    const child = await environment.spawn({
      command: ['sh', '-c', ACCEPT, 'sh', `${directory}/${name}`],
      stdin: 'pipe',
    })
    const stdin = child.stdin?.getWriter()
    stdin?.closed.catch(() => {})
    const reply = (message: object) => void stdin?.write(Buffer.from(`${JSON.stringify(message)}\n`)).catch(() => {})
    try {
      for await (const line of lines(child.stdout)) {
        const message = parseJson(line)
        if (isObject(message)) onMessage(message, reply)
      }
    } finally {
      child.kill()
      await child.exited
    }
  }
  async function listen(): Promise<void> {
    for await (const name of lines(listening.stdout)) {
      if (/^[\w-]+$/.test(name)) accept(name).catch(() => {})
    }
  }
  // The sandbox may end at any time.
  listen().catch(() => {})

  return {
    command: ['sh', '-c', CONNECT, 'sh', directory],
    async close() {
      listening.kill()
      await listening.exited.catch(() => {})
      await runCommand(environment, { command: ['rm', '-rf', directory] }).catch(() => {})
    },
  }
}
