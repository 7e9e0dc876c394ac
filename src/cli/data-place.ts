import type { Config } from '../core/config.ts'
import { readConfig } from '../start/config.ts'
import { defaultDataDirectory } from '../start/settings.ts'
import type { Given } from './command-line.ts'
import { findServerDirectories, hasServer } from './running-servers.ts'

export interface DataPlace {
  config: Config
  /** Call it after a change. When no running server uses this data directory, it says so on stderr, and where servers run. */
  tellIfUnused(): void
}

/**
 * Reads the settings of a command that works beside a server. Without a named data directory, and without a server on the
 * default one, it uses the directory of the only running server.
 */
export async function readPlace(given: Given): Promise<DataPlace> {
  const config = await readConfig(given.settings, process.env)
  const { dataDirectory } = config
  if (hasServer(dataDirectory)) return { config, tellIfUnused: () => {} }
  const others = findServerDirectories()
  const [only] = others
  if (!isNamed(given, dataDirectory) && only !== undefined && others.length === 1) {
    if (!given.has('quiet')) console.error(`threadbox: the data directory is ${only}, where a server runs`)
    return { config: { ...config, dataDirectory: only }, tellIfUnused: () => {} }
  }
  return {
    config,
    tellIfUnused() {
      const elsewhere = others.length === 0 ? '' : `; servers run on ${others.join(', ')}: choose by --data-dir`
      console.error(`threadbox: no server runs on ${dataDirectory} now${elsewhere}`)
    },
  }
}

const isNamed = ({ settings }: Given, dataDirectory: string): boolean =>
  dataDirectory !== defaultDataDirectory() ||
  process.env.THREADBOX_DATA_DIR !== undefined ||
  settings.some(each => each.startsWith('--data-dir='))
