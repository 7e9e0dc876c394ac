import { createProcessTable } from '../../environment/process-table.ts'
import type { EnvironmentProcesses } from '../../plugin-api/index.ts'
import { type Call, lanes } from '../wire/call.ts'
import { json } from '../wire/frame.ts'
import { commandOf, type GuestRequest } from '../wire/requests.ts'
import { type GuestSystem, startCommand } from './commands.ts'
import { nextTurn } from './pipes.ts'

/** The sandbox's processes. They live as long as the guest, whatever server is connected. */
export const createGuestProcesses = (system: GuestSystem): EnvironmentProcesses =>
  createProcessTable(async (options, take) => {
    const { pid, exited, input, ...command } = startCommand(commandOf(options), system, {
      async take(stream, bytes) {
        await take(stream, bytes)
        // One that prints without an end leaves the others their turn.
        await nextTurn()
      },
      isGone: () => false,
    })
    return {
      pid,
      exited,
      ...(input && { write: input.write, closeStdin: input.end }),
      signal: command.signal,
      resize: command.resize,
      killTree: command.killTree,
    }
  })

type ProcessOp = 'start' | 'processes' | 'process' | 'output' | 'input' | 'end-input' | 'signal' | 'resize' | 'forget'

/** Answers a server's call about the sandbox's processes. */
export async function answerProcesses(
  call: Call,
  request: Extract<GuestRequest, { op: ProcessOp }>,
  processes: EnvironmentProcesses,
): Promise<object> {
  switch (request.op) {
    case 'start':
      return { process: await processes.start(request.options) }
    case 'processes':
      await call.send(lanes.down, json(await processes.list()))
      return {}
    case 'process':
      return { process: await processes.get(request.pid) }
    case 'output': {
      const { wait } = request
      const { pieces, ...rest } = await processes.read(request.pid, request.offset, { wait, signal: goneSignal(call) })
      await call.send(lanes.down, Buffer.concat(pieces.map(({ bytes }) => bytes)))
      const runs = pieces.map(({ stream, bytes }) => (stream === 'stderr' ? -bytes.byteLength : bytes.byteLength))
      return { ...rest, runs }
    }
    case 'input': {
      const signal = goneSignal(call)
      for (let chunk = await call.read(lanes.up); chunk; chunk = await call.read(lanes.up)) {
        await processes.write(request.pid, chunk, signal)
      }
      return {}
    }
    case 'end-input':
      await processes.closeStdin(request.pid)
      return {}
    case 'signal':
      await processes.signal(request.pid, request.signal)
      return {}
    case 'resize':
      await processes.resize(request.pid, request.size)
      return {}
    case 'forget':
      await processes.remove(request.pid)
      return {}
  }
}

/** Aborted when the server has ended the call, or is gone. */
function goneSignal(call: Call): AbortSignal {
  const abort = new AbortController()
  const gone = () => abort.abort()
  call.result.then(gone, gone)
  return abort.signal
}
