import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Config } from '../core/config.ts'
import { openDiskSpace } from '../disk/space.ts'
import type { Check } from '../plugin-api/index.ts'
import { describeCheck, getBackend, isFatal } from '../start/backend.ts'
import { readConfig } from '../start/config.ts'
import { loadPlugins } from '../start/load-plugins.ts'
import type { Given } from './command-line.ts'

/** Checks what the chosen backend needs and prints each result. False when serve would refuse to start. */
export async function doctor({ settings }: Given): Promise<boolean> {
  const config = await readConfig(settings, process.env)
  const { backends } = await loadPlugins(config)
  const backend = getBackend(backends, config.backend)
  const checks = [...(await backend.check()), await diskCheck(config)]
  await backend.close()
  for (const check of checks) console.log(describeCheck(check))
  const failed = checks.filter(isFatal)
  console.log(
    failed.length === 0
      ? '\nserve will start.'
      : `\nserve will not start: ${failed.map(({ name }) => name).join(', ')}`,
  )
  return failed.length === 0
}

/** Not required: a server starts on a full disk too, so that sandboxes can be deleted. `serve` makes missing directories. */
async function diskCheck({ dataDirectory, reserveMb }: Config): Promise<Check> {
  let directory = dataDirectory
  while (!existsSync(directory)) directory = dirname(directory)
  const diskSpace = await openDiskSpace({ directory, reserveMb, log() {} })
  diskSpace.close()
  const { level, freeMb, reserveMb: kept } = diskSpace.state
  const detail = `${freeMb} MB are free, ${kept} MB are kept free`
  if (level === 'enough') return { name: 'disk space', ok: true, required: false, detail }
  const remedy =
    'Until there is more, nothing new is made and sandboxes that write are stopped: delete some, or free space.'
  return { name: 'disk space', ok: false, required: false, detail, remedy }
}
