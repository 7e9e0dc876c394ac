import { fstatSync } from 'node:fs'
import { once } from '../../async/once.ts'
import { Channel, type ChannelStream } from '../wire/channel.ts'
import { listen } from '../wire/connection.ts'
import { describeError } from '../wire/describe-error.ts'
import { PROTOCOL } from '../wire/frame.ts'
import { SERVER_LISTENS_VARIABLE } from '../wire/proxy-variables.ts'
import type { GuestRequest } from '../wire/requests.ts'
import { hello } from '../wire/version.ts'
import { answerRequest, type Inside } from './answer-request.ts'
import type { GuestSystem } from './commands.ts'
import { createDirectGate } from './direct.ts'
import { sweepDrafts } from './draft-records.ts'
import { createGuestProcesses } from './guest-processes.ts'
import { openLibc } from './libc.ts'
import { findMarkLimit } from './mark-limit.ts'
import { createNameGate } from './names.ts'
import { keepLimits } from './own-limits.ts'
import { createTrees } from './process-tree.ts'
import { createProxyGate, type ProxyGate } from './proxy.ts'
import { startReaper } from './reaper.ts'
import { openStartProgram } from './start-program.ts'

/** Serves calls on a listening socket that was passed as this descriptor. Throws when it was not. Never ends on its own. */
export function serveGuest(listenFd: number): void {
  if (!isSocket(listenFd)) throw new Error('the server starts the guest, inside a sandbox')
  listen({ fd: listenFd }, openGuest())
}

/**
 * Makes this process the guest of its sandbox, before any command runs. Gives what takes a server's connections. `networkTrouble`: why
 * no connection is redirected here.
 */
export function openGuest({
  networkTrouble,
}: {
  networkTrouble?: string | undefined
} = {}): (stream: ChannelStream) => void {
  const libc = openLibc()
  libc.becomeUndumpable()
  libc.guardLimits()
  const mark = findMarkLimit(libc)
  process.umask(0o022)
  sweepDrafts()
  const { THREADBOX_PROCESSES, THREADBOX_ENVIRONMENT } = process.env
  const system: GuestSystem = {
    libc,
    limits: keepLimits(mark),
    trees: createTrees(libc, mark),
    reaper: startReaper(libc),
    start: openStartProgram(),
    maxProcesses: THREADBOX_PROCESSES ? BigInt(THREADBOX_PROCESSES) : undefined,
    ownVariables: THREADBOX_ENVIRONMENT ? JSON.parse(THREADBOX_ENVIRONMENT) : {},
  }
  const gate = createProxyGate()
  // The guest listens before any command runs, so that nothing inside can take the port first.
  if (!process.env[SERVER_LISTENS_VARIABLE]) gate.listen()
  const names = createNameGate()
  names.listen()
  const inside: Inside = {
    system,
    processes: createGuestProcesses(system),
    gate,
    direct: createDirectGate(gate, networkTrouble),
    names,
    attributes: once(async () => (await import('./attributes.ts')).openAttributes()),
    inotify: once(async () => (await import('./inotify.ts')).openInotify()),
  }
  // The build's settings leave code that runs once at a start uncompiled.
  Bun.unsafe.setJITPolicy(1)
  return stream => accept(stream, inside, gate)
}

function isSocket(fd: number): boolean {
  try {
    return fstatSync(fd).isSocket()
  } catch {
    return false
  }
}

function accept(stream: ChannelStream, inside: Inside, gate: ProxyGate): void {
  const channel = new Channel(stream, {
    side: 'guest',
    onOpen(call, request) {
      // The server's requests are trusted; what it relays is not interpreted here.
      answerRequest(call, request as GuestRequest, inside).then(
        result => call.close(result),
        error => call.close({ error: describeError(error) }),
      )
    },
  })
  gate.add(channel)
  channel.sendHello(hello(PROTOCOL))
}
