import type { Duplex } from 'node:stream'
import { ApiError } from '../../errors.ts'
import type {
  Environment,
  EnvironmentProcesses,
  SandboxProcess,
  SpawnOptions,
  TerminalSize,
} from '../../plugin-api/index.ts'
import { type Call, lanes } from '../wire/call.ts'
import { Channel } from '../wire/channel.ts'
import { duplexOf } from '../wire/duplex.ts'
import { PROTOCOL } from '../wire/frame.ts'
import {
  type ControlMessage,
  commandOf,
  type GuestRequest,
  MAX_PROXY_CALLS,
  type SpawnRequest,
} from '../wire/requests.ts'
import { assertProxyRequest, exitOf, pidOf, protocolOf, replyOf } from '../wire/results.ts'
import { createRemoteFiles } from './remote-files.ts'
import { createRemoteProcesses } from './remote-processes.ts'

/** The host's end of the guest in one environment. */
export interface GuestConnection extends Pick<Environment, 'spawn' | 'files' | 'connect'> {
  readonly processes: EnvironmentProcesses
  /** Processes that were spawned here and are still attached. Connections to the proxy do not count as use. */
  readonly activeCalls: number
  /** Calls that are open fail with the reason. */
  close(reason?: ApiError): void
  /** Resolves when the connection is gone; what ran in the foreground is killed by the guest. */
  readonly closed: Promise<void>
}

/** The longest frame of a guest: output comes in smaller ones, and no answer names more than two long paths. */
export const MAX_GUEST_PAYLOAD_BYTES = 256 * 1024

/** A tree in the middle of much input and output may take seconds to die. */
const KILLED_WITHIN_MS = 30_000

export interface GuestOptions {
  /** Takes a connection that a process inside made to the proxy's address. Without it a guest may open none. */
  onProxy?: (socket: Duplex) => void
  /** How long a command that was killed may take to end before the connection is given up. Default 30,000. */
  killedWithinMs?: number
}

/** Resolves after the guest's hello. Rejects when the stream closes before it, or the guest speaks another protocol. */
export async function connectGuest(
  socket: Duplex,
  { onProxy, killedWithinMs = KILLED_WITHIN_MS }: GuestOptions = {},
): Promise<GuestConnection> {
  const channel = new Channel(socket, {
    side: 'host',
    maxPayloadBytes: MAX_GUEST_PAYLOAD_BYTES,
    ...(onProxy && {
      maxPeerCalls: MAX_PROXY_CALLS,
      onOpen: (call: Call, request: unknown) => {
        assertProxyRequest(request)
        onProxy(duplexOf(call, 'answerer'))
      },
    }),
  })
  const protocol = protocolOf(await channel.hello)
  if (protocol !== PROTOCOL) {
    channel.close()
    throw new ApiError(
      'sandbox_unavailable',
      `It runs the guest of another version of threadbox (protocol ${protocol}, not ${PROTOCOL}).`,
    )
  }
  return {
    get activeCalls() {
      return channel.callCount - channel.peerCallCount
    },
    spawn: options => spawn(channel, options, killedWithinMs),
    files: createRemoteFiles(channel),
    processes: createRemoteProcesses(channel),
    async connect(port) {
      const call = channel.open({ op: 'connect', port } satisfies GuestRequest)
      await replyOf(call)
      return duplexOf(call)
    },
    close: reason => channel.close(reason),
    closed: channel.closed,
  }
}

async function spawn(channel: Channel, options: SpawnOptions, killedWithinMs: number): Promise<SandboxProcess> {
  const { stdin, pty, signal } = options
  signal?.throwIfAborted()
  const call = channel.open({ op: 'spawn', ...commandOf(options) } satisfies SpawnRequest)
  const kill = (name: NodeJS.Signals = 'SIGKILL') => {
    call.control({ signal: name } satisfies ControlMessage)
    if (name === 'SIGKILL') expectEnd(channel, call, killedWithinMs)
  }
  const abort = () => kill()
  signal?.addEventListener('abort', abort)
  const exited = call.result.then(exitOf).finally(() => signal?.removeEventListener('abort', abort))
  exited.catch(() => {})
  const pid = pidOf(await replyOf(call))
  return {
    pid,
    ...((stdin === 'pipe' || pty) && { stdin: writableOf(call) }),
    stdout: call.readable(lanes.down),
    stderr: call.readable(lanes.error),
    exited,
    kill,
    ...(pty && { resize: (size: TerminalSize) => call.control({ resize: size } satisfies ControlMessage) }),
  }
}

/** A guest that was taken over could ignore a kill: after this long the connection is given up. */
function expectEnd(channel: Channel, call: Call, withinMs: number): void {
  const late = () => channel.close(new ApiError('sandbox_unavailable', 'The sandbox does not end what it is to kill.'))
  const timer = setTimeout(late, withinMs)
  const done = () => clearTimeout(timer)
  call.result.then(done, done)
}

const writableOf = (call: Call): WritableStream<Uint8Array> =>
  new WritableStream<Uint8Array>({
    write: chunk => call.send(lanes.up, chunk),
    close: () => call.end(lanes.up),
    abort: () => call.end(lanes.up),
  })
