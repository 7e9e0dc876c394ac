import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Config } from '../core/config.ts'
import { ofServer } from '../core/server/checks-of-backends.ts'
import { openDiskSpace } from '../disk/space.ts'
import { messageOf } from '../errors.ts'
import type { Check } from '../plugin-api/index.ts'
import { checksOf, describeCheck, getBackends, isFatal } from '../start/backend.ts'
import { readConfig } from '../start/config.ts'
import { loadPlugins } from '../start/load-plugins.ts'
import { readTlsPair, warningsOf } from '../start/tls-pair.ts'
import type { Given } from './command-line.ts'

/** Checks what the chosen backends need and prints each result. False when serve would refuse to start. */
export async function doctor({ settings }: Given): Promise<boolean> {
  const config = await readConfig(settings, process.env)
  const { backends } = await loadPlugins(config)
  const used = getBackends(backends, config)
  const tried = await Promise.all(used.map(async each => ofServer(config, each.name, await checksOf(each))))
  const checks = [...tried.flat(), await diskCheck(config), ...tlsChecks(config)]
  for (const each of used) await each.close()
  for (const check of checks) console.log(describeCheck(check))
  const failed = checks.filter(isFatal)
  console.log(
    failed.length === 0
      ? '\nserve will start.'
      : `\nserve will not start: ${failed.map(({ name }) => name).join(', ')}`,
  )
  return failed.length === 0
}

function tlsChecks({ tls }: Config): Check[] {
  if (!tls) return []
  const name = 'TLS certificate'
  try {
    const [warning] = warningsOf(readTlsPair(tls), tls, new Date())
    return [{ name, ok: warning === undefined, required: false, detail: warning ?? `${tls.certFile} and its key` }]
  } catch (error) {
    const remedy = 'Give a certificate and the key that it was made with.'
    return [{ name, ok: false, required: true, detail: messageOf(error), remedy }]
  }
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
