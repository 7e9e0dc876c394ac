import { downloadScript, type Route } from './downloads.ts'
import { cpuSeconds } from './process-figures.ts'
import type { Sizes } from './sizes.ts'
import type { Peer } from './start-peer.ts'
import { MIB, speed, time } from './time.ts'

/** How many downloads go on in the rows of several at once. */
export const AT_ONCE = 8

/** Runs a script of bash to its end, on the machine or in a sandbox, and returns what it prints. Rejects when it fails. */
export type RunScript = (script: string) => Promise<string>

/** Runs a script on the machine itself. */
export const runOutside = (script: string): Promise<string> => Bun.$`bash -c ${script}`.quiet().text()

/** The speed in MiB/s, and the CPU time of the server's process in s/GiB. */
export interface Download {
  speed: number
  cpu: number
}

/**
 * Makes a function that measures downloads from the bare server. All downloads of one call have the same size in sum, however
 * many they are. It rejects when a download was not complete.
 */
export function createMeter(peer: Peer, server: { pid: number }, { downloadMib }: Sizes) {
  const bytes = downloadMib * MIB
  const finished = async () => Number(await (await fetch(`${peer.url}/finished`)).text())
  return async (downloads: number, route: Route, run: RunScript): Promise<Download> => {
    const before = { finished: await finished(), cpu: cpuSeconds(server.pid) }
    const script = downloadScript(route, { downloads, bytes: bytes / downloads })
    const took = await time(() => run(script))
    if ((await finished()) - before.finished !== downloads) throw new Error('a download was not complete')
    return { speed: speed(bytes, took), cpu: (cpuSeconds(server.pid) - before.cpu) / (downloadMib / 1024) }
  }
}
