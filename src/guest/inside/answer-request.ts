import type { EnvironmentProcesses } from '../../plugin-api/index.ts'
import { type Call, lanes } from '../wire/call.ts'
import { json } from '../wire/frame.ts'
import type { GuestRequest } from '../wire/requests.ts'
import { type GuestSystem, serveSpawn } from './commands.ts'
import { describe, list, makeDirectory, move, remove, sendFile } from './files.ts'
import { receiveFile } from './receive-file.ts'
import { relay } from './relay.ts'

/** What a guest answers requests with. */
export interface Inside {
  system: GuestSystem
  /** One table for all servers that come and go. */
  processes: EnvironmentProcesses
}

/** Carries out a server's request and gives the result that closes its call. */
export async function answerRequest(call: Call, request: GuestRequest, inside: Inside): Promise<object> {
  // Each handler takes the request of its own op; the table's type holds them together.
  const handle = handlers[request.op] as Handler<GuestRequest>
  return await handle(call, request, inside)
}

type Handler<Request> = (call: Call, request: Request, inside: Inside) => Promise<object>

const handlers: { [Op in GuestRequest['op']]: Handler<Extract<GuestRequest, { op: Op }>> } = {
  spawn: (call, request, { system }) => done(serveSpawn(call, request, system)),
  read: (call, { path }) => done(sendFile(call, path)),
  write: (call, { path }) => receiveFile(call, path),
  info: async (_call, { path }) => ({ info: await describe(path) }),
  list: async (call, { path, depth }) => done(call.send(lanes.down, json(await list(path, depth)))),
  mkdir: async (_call, { path }) => ({ made: await makeDirectory(path) }),
  rename: (_call, { from, to }) => done(move(from, to)),
  remove: (_call, { path }) => done(remove(path)),
  connect: (call, { port }) => done(relay(call, port)),

  start: async (_call, { options }, { processes }) => ({ process: await processes.start(options) }),
  processes: async (call, _request, { processes }) => done(call.send(lanes.down, json(await processes.list()))),
  process: async (_call, { pid }, { processes }) => ({ process: await processes.get(pid) }),
  async output(call, { pid, offset, wait }, { processes }) {
    const { pieces, ...rest } = await processes.read(pid, offset, { wait, signal: goneSignal(call) })
    await call.send(lanes.down, Buffer.concat(pieces.map(({ bytes }) => bytes)))
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
