import { fillPlace } from '../fill-place.ts'
import type { Part } from '../part.ts'
import type { Place } from '../place.ts'

/** Measures how soon a server listens: on a new data directory, and on one with many stopped sandboxes. */
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
  // A server counts as listening when it answers, as a supervisor would see it.
  await server.ask('GET', '/health')
  return server.listeningAfterMs
}
