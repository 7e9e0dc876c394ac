import type { EnvironmentProcesses } from '../../plugin-api/index.ts'
import { type Call, lanes } from '../wire/call.ts'
import { json } from '../wire/frame.ts'
import { GuestError, type GuestRequest } from '../wire/requests.ts'
import type { Attributes } from './attributes.ts'
import { type GuestSystem, serveSpawn } from './commands.ts'
import type { DirectGate } from './direct.ts'
import type { Inotify } from './inotify.ts'
import type { NameGate } from './names.ts'
import type { ProxyGate } from './proxy.ts'

/** What a guest answers requests with. */
export interface Inside {
  system: GuestSystem
  /** One table for all servers that come and go. */
  processes: EnvironmentProcesses
  gate: ProxyGate
  direct: DirectGate
  names: NameGate
  /** Linux's calls that few guests need. They are opened at their first use. */
  attributes(): Promise<Attributes>
  inotify(): Promise<Inotify>
}

/** Carries out a server's request and gives the result that closes its call. */
export async function answerRequest(call: Call, request: GuestRequest, inside: Inside): Promise<object> {
  // Each handler takes the request of its own op; the table's type holds them together.
  const handle = (Object.hasOwn(handlers, request.op) ? handlers[request.op] : undefined) as
    | Handler<GuestRequest>
    | undefined
  // Only a later server sends a request that is unknown here, and it should know the guest's version.
  if (!handle)
    throw new GuestError('conflict', 'The sandbox runs an earlier version of threadbox, which cannot do this.')
  return await handle(call, request, inside)
}

/** Loaded at the first use, as what brings node:net is: most guests only run commands, and would start more slowly. */
const files = () => import('./files.ts')

type Handler<Request> = (call: Call, request: Request, inside: Inside) => Promise<object>

const handlers: { [Op in GuestRequest['op']]: Handler<Extract<GuestRequest, { op: Op }>> } = {
  spawn: (call, request, { system }) => done(serveSpawn(call, request, system)),
  read: async (call, { path, asDescriptor }) => done((await files()).sendFile(call, path, asDescriptor)),
  write: async (call, { path, ...how }, { attributes }) =>
    (await import('./receive-file.ts')).receiveFile(call, path, how, attributes),
  info: async (_call, { path, details }, { attributes }) => ({
    info: await (await files()).describe(path, details ? await attributes() : undefined),
  }),
  async list(call, { path, depth, details }, { attributes }) {
    const found = await (await files()).list(path, depth, details ? await attributes() : undefined)
    return done(call.send(lanes.down, json(found)))
  },
  mkdir: async (_call, { path, owner }) => ({ made: await (await files()).makeDirectory(path, owner) }),
  watch: async (call, { path, isRecursive }, { inotify }) =>
    done((await import('./watch.ts')).watchDirectory(call, path, isRecursive, await inotify())),
  rename: async (_call, { from, to }) => done((await files()).move(from, to)),
  remove: async (_call, { path }) => done((await files()).remove(path)),
  connect: async (call, { port }) => done((await import('./relay.ts')).relay(call, port)),
  'listen-for-proxy': async (_call, _request, { gate }) => {
    gate.listen()
    return {}
  },
  'listen-for-ssh-agent': async (_call, _request, { gate }) => ({ path: gate.listenForSshAgent() }),
  names(call, _request, { names }) {
    // The network may have got IPv6 since the start.
    names.listen()
    return done(names.serve(call))
  },

  'listen-for-direct': async (call, _request, { direct }) => {
    direct.listen()
    const { close, ...sockets } = direct.lend()
    try {
      call.answer(sockets)
      await call.result
    } finally {
      close()
    }
    return {}
  },

  start: async (_call, { options }, { processes }) => ({ process: await processes.start(options) }),
  processes: async (call, _request, { processes }) => done(call.send(lanes.down, json(await processes.list()))),
  process: async (_call, { pid }, { processes }) => ({ process: await processes.get(pid) }),
  async output(call, { pid, offset, wait }, { processes }) {
    const { pieces, ...rest } = await processes.read(pid, offset, { wait, signal: goneSignal(call) })
    const [first] = pieces
    const isOne = first !== undefined && pieces.length === 1
    await call.send(lanes.down, isOne ? first.bytes : Buffer.concat(pieces.map(({ bytes }) => bytes)))
    const runs = pieces.map(({ stream, bytes }) => (stream === 'stderr' ? -bytes.byteLength : bytes.byteLength))
    return { ...rest, runs }
  },
  async input(call, { pid }, { processes }) {
    const signal = goneSignal(call)
    for (let chunk = await call.read(lanes.up); chunk; chunk = await call.read(lanes.up)) {
      await processes.write(pid, chunk, signal)
    }
    return {}
  },
  'end-input': (_call, { pid }, { processes }) => done(processes.closeStdin(pid)),
  signal: (_call, { pid, signal }, { processes }) => done(processes.signal(pid, signal)),
  resize: (_call, { pid, size }, { processes }) => done(processes.resize(pid, size)),
  forget: (_call, { pid }, { processes }) => done(processes.remove(pid)),
}

/** The result of work that has none to give. */
const done = (work: Promise<void>): Promise<object> => work.then(() => ({}))

/** Aborted when the server has ended the call, or is gone. */
function goneSignal(call: Call): AbortSignal {
  const abort = new AbortController()
  const gone = () => abort.abort()
  call.result.then(gone, gone)
  return abort.signal
}
