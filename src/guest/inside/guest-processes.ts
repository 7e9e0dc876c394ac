import { createProcessTable } from '../../environment/process-table.ts'
import { nextTurn } from '../../environment/pump.ts'
import type { EnvironmentProcesses } from '../../plugin-api/index.ts'
import { commandOf } from '../wire/requests.ts'
import { type GuestSystem, startCommand } from './commands.ts'

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
