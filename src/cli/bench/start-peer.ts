import { commandOf } from '../../start/executable.ts'

/** The bare server of `peer.ts` in a running process. */
export interface Peer extends AsyncDisposable {
  readonly url: string
  /** What it serves at an address that is not of the loopback. Undefined when the machine has no such address. */
  readonly outer?: {
    /** Has `/stream` alone. */
    readonly url: string
    /** The address and port that send one byte without a request. */
    readonly greeter: string
  }
  readonly pid: number
}

/** Starts the bare server. It ends with this process too. */
export async function startPeer(): Promise<Peer> {
  // Detached, because a terminal's Ctrl-C is meant for this process, which ends the child.
  const child = Bun.spawn(commandOf('bench-peer'), { stdio: ['pipe', 'pipe', 'ignore'], detached: true })
  let printed = ''
  for await (const bytes of child.stdout) {
    printed += Buffer.from(bytes)
    if (printed.includes('\n')) break
  }
  const [url, outerUrl, greeter] = printed.trim().split(' ')
  if (!url) throw new Error(`the bare server did not start: exit code ${await child.exited}`)
  return {
    url,
    ...(outerUrl && greeter && { outer: { url: outerUrl, greeter } }),
    pid: child.pid,
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await child.exited
    },
  }
}
