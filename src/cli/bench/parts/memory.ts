import { basename } from 'node:path'
import { LeftOut, type Part } from '../part.ts'
import { privateMemoryOf, pssOf, rssOf } from '../process-figures.ts'

const SETTLE_MS = 1500

/** Measures the memory of an idle server, and what running sandboxes add. */
export const memory: Part = {
  rounds: 1,
  async measure({ sizes, openPlace, record }) {
    const place = await openPlace()
    try {
      await using server = await place.serve()
      await server.ask('GET', '/v1/sandboxes')
      await Bun.sleep(SETTLE_MS)
      record('idle-rss', [rssOf(server.pid)])
      record('idle-pss', [pssOf(server.pid)])
      // The first sandbox brings what all of them share.
      await server.exec(await server.create())
      await Bun.sleep(SETTLE_MS)
      const name = basename(place.directory)
      const before = privateMemoryOf(name)
      for (let index = 0; index < sizes.activeSandboxes; index++) await server.exec(await server.create())
      await Bun.sleep(SETTLE_MS)
      const after = privateMemoryOf(name)
      if (after.processes < before.processes + sizes.activeSandboxes)
        throw new LeftOut('the processes of sandboxes are found on nsjail only')
      record('active-private', [(after.mb - before.mb) / sizes.activeSandboxes])
    } finally {
      await place.close()
    }
  },
}
