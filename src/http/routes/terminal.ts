import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { createLock } from '../../async/lock.ts'
import type { Loan } from '../../async/shared-memory.ts'
import type { Runtime } from '../../core/runtime.ts'
import { followOutput, useProcesses } from '../../core/sandboxes/processes.ts'
import { ApiError } from '../../errors.ts'
import type { EnvironmentProcesses } from '../../plugin-api/index.ts'
import { objectOf, parseJson } from '../../read/json.ts'
import { getCaller } from '../caller.ts'
import { Flag, Offset, ProcessParams } from '../schema.ts'
import {
  acceptHeaders,
  type Peer,
  type SocketHandlers,
  type Sockets,
  upgradeToSocket,
  WAITING_MESSAGE_BYTES,
} from '../socket.ts'

const Query = Type.Object({
  offset: Type.Optional(Offset),
  hangup: Type.Optional(Flag),
})

/** Bytes that may wait for a slow peer. The process's output buffer keeps the rest. */
const MAX_UNSENT_BYTES = 256 * 1024
/** Bytes that may wait for a process that does not read. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024
/** Keeps proxies from closing a silent terminal, and finds peers that are gone. */
const PING_MS = 30_000
const MAX_CELLS = 9999

/** Close codes of RFC 6455. */
const NORMAL = 1000
const UNSUPPORTED = 1003
const TOO_MUCH = 1009
const FAILED = 1011
const TRY_LATER = 1013

/** A process's terminal as a WebSocket. Bytes are binary messages both ways; everything else is JSON in text messages. */
export const terminalRoutes = (runtime: Runtime, sockets: Sockets) =>
  new Elysia({ prefix: '/v1/sandboxes/:sandboxId/processes/:pid/terminal' }).get(
    '/',
    async ({ request, params, query: { offset = '0', hangup } }) => {
      assertOrigin(request, runtime.config.origins)
      using use = await useProcesses(runtime, getCaller(request), params.sandboxId)
      const { processes, hold } = use
      const pid = Number(params.pid)
      const { pty } = await processes.get(pid)
      if (!pty) throw new ApiError('invalid_request', `The process ${pid} has no terminal.`)
      const shares = { giveWay: () => sockets.turn(request), borrow: () => sockets.borrow(request) }
      const options = { hold, offset: Number(offset), hangup: hangup === 'true', ...shares }
      const handlers = createTerminal(processes, pid, options)
      return upgradeToSocket(sockets.upgrade, request, handlers, acceptHeaders(request))
    },
    { params: ProcessParams, query: Query },
  )

/** Browsers send no preflight before they open a WebSocket to another origin. Throws forbidden. */
function assertOrigin(request: Request, origins: readonly string[] | undefined): void {
  const origin = request.headers.get('origin')
  if (origin && origins && !origins.includes(origin)) {
    throw new ApiError('forbidden', 'This origin may not call: see the setting origins.')
  }
}

interface TerminalOptions {
  hold: () => Disposable
  offset: number
  hangup: boolean
  borrow: () => Loan
  giveWay: () => Promise<void> | undefined
}

function createTerminal(
  processes: EnvironmentProcesses,
  pid: number,
  { hold, offset, hangup, borrow, giveWay }: TerminalOptions,
): SocketHandlers {
  const gone = new AbortController()
  const { signal } = gone
  let drained = Promise.withResolvers<void>()
  const lock = createLock()
  let unread = 0
  let pings: Timer | undefined
  let use: Disposable | undefined
  let loan: Loan | undefined

  const show = async (peer: Peer) => {
    for await (const event of followOutput(processes, pid, { offset, follow: true, signal })) {
      if (event.type === 'exit' || event.type === 'gap') peer.send(JSON.stringify(event))
      else peer.send(event.bytes)
      await giveWay()
      while (peer.getBufferedAmount() > MAX_UNSENT_BYTES && !signal.aborted) await drained.promise
    }
  }
  const inTurn = (peer: Peer, bytes: number, work: () => Promise<void>) => {
    const size = bytes + WAITING_MESSAGE_BYTES
    unread += size
    if (unread > MAX_UNREAD_BYTES) return peer.close(TOO_MUCH, 'the process does not read')
    if (loan?.grow(size) === false) return peer.close(TRY_LATER, 'too many bytes wait for processes that do not read')
    void lock(async () => {
      try {
        if (!signal.aborted) await work()
      } catch (error) {
        // When the process has ended, its last output and its exit are still to be sent.
        if (!isEnded(error)) fail(peer, error)
      }
      unread -= size
      loan?.grow(-size)
    })
  }
  const fail = (peer: Peer, error: unknown) => {
    if (signal.aborted) return
    peer.close(FAILED, error instanceof ApiError ? error.code : 'internal_error')
  }

  return {
    open(peer) {
      use = hold()
      loan = borrow()
      pings = setInterval(() => peer.ping(), PING_MS)
      show(peer).then(
        () => peer.close(NORMAL),
        error => fail(peer, error),
      )
    },
    message(peer, data) {
      if (typeof data === 'string') {
        const size = parseResize(data)
        if (!size) return peer.close(UNSUPPORTED, 'a text message must be {type:"resize",columns,rows}')
        return inTurn(peer, 0, () => processes.resize(pid, size))
      }
      // The server reuses the buffer once this returns.
      const bytes = Buffer.from(data)
      inTurn(peer, bytes.byteLength, () => processes.write(pid, bytes, signal))
    },
    drain() {
      drained.resolve()
      drained = Promise.withResolvers()
    },
    close() {
      clearInterval(pings)
      use?.[Symbol.dispose]()
      loan?.[Symbol.dispose]()
      loan = undefined
      gone.abort()
      drained.resolve()
      // Removal fails when the process is gone already.
      if (hangup) processes.remove(pid).catch(() => {})
    },
  }
}

const isEnded = (error: unknown): boolean => error instanceof ApiError && error.code === 'conflict'

function parseResize(text: string): { columns: number; rows: number } | undefined {
  const { type, columns, rows } = objectOf(parseJson(text)) ?? {}
  const isSize = (value: unknown): value is number =>
    Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_CELLS
  return type === 'resize' && isSize(columns) && isSize(rows) ? { columns, rows } : undefined
}
