import { MAX_BATCH_BYTES, MAX_PROCESSES } from '../../environment/process-table.ts'
import { ApiError } from '../../errors.ts'
import type { EnvironmentProcesses } from '../../plugin-api/index.ts'
import { lanes } from '../wire/call.ts'
import type { GuestRequest } from '../wire/requests.ts'
import { batchOf, processInfoOf, processInfosOf, resultOf } from '../wire/results.ts'
import type { AskGuest } from './ask-guest.ts'
import { closeOnAbort, collect } from './read-answer.ts'

/** Of a list: no table has so many processes with so long names. */
const MAX_LIST_BYTES = 2 * 1024 * 1024

/** The processes that a guest keeps, as calls to it. */
export function createRemoteProcesses(askGuest: AskGuest): EnvironmentProcesses {
  const ask = async (request: GuestRequest) => resultOf(await askGuest(request).result)

  return {
    start: async ({ ...options }) => processInfoOf((await ask({ op: 'start', options })).process),
    async list() {
      const json = await collect(askGuest({ op: 'processes' }), MAX_LIST_BYTES)
      const infos = processInfosOf(json.toString('utf8'))
      // Each running process is followed to its end.
      if (infos.length > MAX_PROCESSES)
        throw new ApiError('sandbox_unavailable', 'The sandbox lists too many processes.')
      return infos
    },
    get: async pid => processInfoOf((await ask({ op: 'process', pid })).process),
    async read(pid, offset, { wait, signal }) {
      signal?.throwIfAborted()
      const call = askGuest({ op: 'output', pid, offset, wait })
      closeOnAbort(call, signal)
      const bytes = await collect(call, MAX_BATCH_BYTES)
      signal?.throwIfAborted()
      return batchOf(await call.result, bytes, wait)
    },
    async write(pid, bytes, signal) {
      signal?.throwIfAborted()
      const call = askGuest({ op: 'input', pid })
      closeOnAbort(call, signal)
      await call.send(lanes.up, bytes)
      call.end(lanes.up)
      const result = await call.result
      signal?.throwIfAborted()
      resultOf(result)
    },
    async closeStdin(pid) {
      await ask({ op: 'end-input', pid })
    },
    async signal(pid, name) {
      await ask({ op: 'signal', pid, signal: name })
    },
    async resize(pid, size) {
      await ask({ op: 'resize', pid, size })
    },
    async remove(pid) {
      await ask({ op: 'forget', pid })
    },
  }
}
