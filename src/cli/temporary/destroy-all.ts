import { readConfig } from '../../start/config.ts'
import { loadPlugins } from '../../start/load-plugins.ts'

/** A data directory, and the settings of the server or command that uses it. */
export interface CleanupOrder {
  dataDirectory: string
  settings: readonly string[]
  /** Another directory that goes with it. */
  beside?: string
}

/** Destroys every environment of a data directory, where no server runs. Returns how many there were. */
export async function destroyAll({ dataDirectory, settings }: CleanupOrder): Promise<number> {
  const config = await readConfig([...settings, '--data-dir', dataDirectory], process.env)
  const { backends } = await loadPlugins(config)
  let count = 0
  for (const name of config.backends) {
    const backend = backends.get(name)
    const ids = (await backend?.list()) ?? []
    for (const id of ids) await (await backend?.open(id))?.destroy()
    await backend?.close()
    count += ids.length
  }
  return count
}
