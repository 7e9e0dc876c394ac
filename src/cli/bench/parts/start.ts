import { fillPlace } from '../fill-place.ts'
import type { Part } from '../part.ts'
import type { Place } from '../place.ts'

/** How soon a server listens: on a new data directory, and on one with many sandboxes that are stopped. */
export const start: Part = {
  rounds: 2,
  async measure({ sizes, openPlace, record, signal }) {
    const place = await openPlace()
    try {
      record('start-new', [await listen(place)])
      const empty = await fillPlace(place, sizes.sandboxesOnDisk, signal)
      try {
        await listen(place)
        const starts: number[] = []
        for (let index = 0; index < sizes.starts; index++) starts.push(await listen(place))
        record('start', starts)
      } finally {
        await empty()
      }
    } finally {
      await place.close()
    }
  },
}

async function listen(place: Place): Promise<number> {
  await using server = await place.serve()
  // As a supervisor would: it listens when it answers.
  await server.ask('GET', '/health')
  return server.listeningAfterMs
}
