import { close } from 'node:fs'
import type { Duplex } from 'node:stream'
import { once } from '../../async/once.ts'
import type { Descriptor } from '../../descriptor.ts'
import { ApiError } from '../../errors.ts'
import type {
  Environment,
  EnvironmentFiles,
  EnvironmentProcesses,
  SandboxProcess,
  SpawnOptions,
  TerminalSize,
} from '../../plugin-api/index.ts'
import { type Call, lanes } from '../wire/call.ts'
import { Channel, type ChannelStream } from '../wire/channel.ts'
import { duplexOf } from '../wire/duplex.ts'
import { type ControlMessage, commandOf, MAX_PROXY_CALLS } from '../wire/requests.ts'
import {
  exitOf,
  lentSocketsOf,
  offersDescriptors,
  outletRequestOf,
  pathOf,
  pidOf,
  replyOf,
  versionsOf,
} from '../wire/results.ts'
import { FILE_DETAILS_SINCE, knownSince } from '../wire/version.ts'
import { type AskGuest, askGuest, findMismatch } from './ask-guest.ts'
import { type GuestDescriptors, takeDescriptor } from './guest-descriptors.ts'
import { serveNames } from './names.ts'
import { readOffered } from './offered-outputs.ts'
import type { Outlets } from './outlets.ts'
import { createRemoteFiles } from './remote-files.ts'
import { createRemoteProcesses } from './remote-processes.ts'

/** The host's end of the guest in one environment. */
export interface GuestConnection extends Pick<Environment, 'spawn' | 'connect'> {
  readonly files: Required<EnvironmentFiles>
  readonly processes: EnvironmentProcesses
  /** Makes the guest listen at the proxy's address, when it was started to leave that to the server. */
  listenForProxy(): void
  /**
   * Has the guest listen where the kernel redirects connections to. Resolves to sockets of the guest to the kernel, which close with
   * `close`; undefined where this server may not copy them. Rejects when its guest is too old for it.
   */
  listenForDirect(): Promise<LentSockets | undefined>
  /**
   * Makes the guest pass name look-ups of programs inside to this server. Without it they are told that no name can be resolved.
   */
  answerNames(): void
  /** Makes the guest create the socket of an SSH agent, once. Resolves to its path. */
  openSshAgent(): Promise<string>
  /** Processes that were spawned here and are still attached, files and connections to ports. Connections to the proxy do not count as use. */
  readonly activeCalls: number
  /** Calls that are open fail with the reason. */
  close(reason?: ApiError): void
  /** Resolves when the connection is gone; what ran in the foreground is killed by the guest. */
  readonly closed: Promise<void>
}

/** Sockets to the kernel in a guest's network, one for each part of the kernel. The guest has them too. */
export interface LentSockets {
  route: Descriptor
  netfilter: Descriptor
  close(): void
}

/** The longest frame of a guest: output comes in smaller ones, and no answer names more than two long paths. */
export const MAX_GUEST_PAYLOAD_BYTES = 256 * 1024

/** A tree in the middle of much input and output may take seconds to die. */
const KILLED_WITHIN_MS = 30_000

/** Without `onProxy` a guest may open no connection to the proxy. */
export interface GuestOptions extends Partial<Outlets> {
  /** Called after the guest's hello, where it runs on this machine. Undefined: this server may not copy its descriptors. */
  openDescriptors?: () => GuestDescriptors | undefined
  /**
   * Connects to a port inside without the guest. Undefined when that does not succeed at once: then the guest connects, or says why it
   * cannot.
   */
  connectDirectly?: (port: number) => Duplex | undefined
  /** How long a command that was killed may take to end before the connection is given up. Default 30,000. */
  killedWithinMs?: number
}

/** Resolves after the guest's hello. Rejects when the stream closes before it, or its guest and this server are too far apart. */
export async function connectGuest(
  stream: ChannelStream,
  {
    onProxy,
    onDirect,
    onSshAgent,
    answerName,
    openDescriptors,
    connectDirectly,
    killedWithinMs = KILLED_WITHIN_MS,
  }: GuestOptions = {},
): Promise<GuestConnection> {
  const channel = new Channel(stream, {
    side: 'host',
    maxPayloadBytes: MAX_GUEST_PAYLOAD_BYTES,
    ...(onProxy && {
      maxPeerCalls: MAX_PROXY_CALLS,
      onOpen: (call: Call, request: unknown) => {
        const outlet = outletRequestOf(request)
        const stream = duplexOf(call, 'answerer')
        if (outlet.op === 'proxy') onProxy(stream)
        else if (outlet.op === 'ssh-agent' && onSshAgent) onSshAgent(stream)
        else if (outlet.op === 'direct' && onDirect) onDirect(stream, { address: outlet.address, port: outlet.port })
        else stream.destroy()
      },
    }),
  })
  const hello = await channel.hello
  const mismatch = findMismatch(hello)
  if (mismatch) {
    channel.close()
    throw new ApiError('sandbox_unavailable', mismatch)
  }
  const ask = askGuest(channel, hello)
  const descriptors = offersDescriptors(hello) ? openDescriptors?.() : undefined
  const direct = new Set<Duplex>()
  /** Counts the open calls that the server makes for its own needs. */
  let ownCalls = 0
  void channel.closed.then(() => {
    descriptors?.close()
    for (const stream of [...direct]) stream.destroy()
  })
  return {
    get activeCalls() {
      return channel.callCount - channel.peerCallCount - ownCalls + direct.size
    },
    spawn: options => spawn(channel, ask, options, { killedWithinMs, descriptors }),
    files: createRemoteFiles(ask, {
      descriptors,
      keepsAttributes: versionsOf(hello).version >= FILE_DETAILS_SINCE,
    }),
    processes: createRemoteProcesses(ask),
    openSshAgent: once(async () => pathOf(await ask({ op: 'listen-for-ssh-agent' }).result)),
    // A guest of the earlier version does not know this request, and listens anyway.
    listenForProxy: () => void ask({ op: 'listen-for-proxy' }),
    async listenForDirect() {
      const call = ask({ op: 'listen-for-direct' })
      try {
        const numbers = lentSocketsOf(await replyOf(call))
        return descriptors && takeLent(descriptors, numbers)
      } finally {
        call.close()
      }
    },
    // A guest of the earlier version has no resolver.
    answerNames() {
      if (!answerName || versionsOf(hello).version < knownSince.names) return
      const names = ask({ op: 'names' })
      ownCalls++
      void serveNames(names, answerName).finally(() => ownCalls--)
    },
    async connect(port) {
      const stream = connectDirectly?.(port)
      if (stream) {
        direct.add(stream)
        // The stream's user gets errors too, but a connection may break before it has one.
        stream.on('error', () => {}).once('close', () => direct.delete(stream))
        return stream
      }
      const call = ask({ op: 'connect', port })
      await replyOf(call)
      return duplexOf(call)
    },
    close: reason => channel.close(reason),
    closed: channel.closed,
  }
}

function takeLent(from: GuestDescriptors, numbers: { route: unknown; netfilter: unknown }): LentSockets {
  const taken: Descriptor[] = []
  const closeAll = () => {
    // The kernel may wait in this call, so it must not run on the event loop.
    for (const { number } of taken.splice(0)) close(number, () => {})
  }
  const take = (number: unknown) => {
    const socket = takeDescriptor(from, number, 'socket')
    taken.push(socket)
    return socket
  }
  try {
    return { route: take(numbers.route), netfilter: take(numbers.netfilter), close: closeAll }
  } catch (error) {
    closeAll()
    throw error
  }
}

interface SpawnSettings {
  killedWithinMs: number
  descriptors: GuestDescriptors | undefined
}

async function spawn(
  channel: Channel,
  ask: AskGuest,
  options: SpawnOptions,
  { killedWithinMs, descriptors }: SpawnSettings,
): Promise<SandboxProcess> {
  const { stdin, pty, signal } = options
  signal?.throwIfAborted()
  const takesOutputs = descriptors !== undefined && !pty
  const call = ask({ op: 'spawn', ...commandOf(options), ...(takesOutputs && { takesOutputs }) })
  if (takesOutputs) call.onControl = readOffered(call, descriptors)
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
