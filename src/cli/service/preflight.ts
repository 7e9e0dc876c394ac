import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readAgentFiles } from '../../core/agents/agent-files.ts'
import { type Config, ConfigError } from '../../core/config.ts'
import { ofServer } from '../../core/server/checks-of-backends.ts'
import { wordsOf } from '../../errors.ts'
import { checksOf, describeCheck, getBackends, isFatal } from '../../start/backend.ts'
import { assertModel } from '../../start/gateway.ts'
import { loadPlugins } from '../../start/load-plugins.ts'
import { readTlsPair } from '../../start/tls-pair.ts'

/**
 * Checks what a server with these settings needs, as far as this process can. Throws an error that says what would keep the
 * server from starting: a ConfigError when a setting is wrong. Leaves nothing behind. Gives what is missing of the backends beside the
 * default, and of classes of sandboxes: the server starts without it.
 */
export async function assertStarts(config: Config, variables: Readonly<Record<string, string>>): Promise<string[]> {
  // Backends read their own variables, such as the key of an account.
  Object.assign(process.env, variables)
  if (config.tls) readTlsPair(config.tls)
  // On the data's file system, but outside of the data directory, which systemd makes.
  const directory = await mkdtemp(join(nearest(config.dataDirectory), '.threadbox-check-'))
  try {
    const { backends, engines } = await loadPlugins({ ...config, dataDirectory: directory })
    if (config.agentsDirectory !== undefined) {
      await readAgentFiles(config.agentsDirectory, [...engines.keys()]).catch(error => {
        throw new ConfigError([`--agents: ${wordsOf(error)}`])
      })
    }
    const checks = await Promise.all(
      getBackends(backends, config).map(async each => {
        const own = await checksOf(each)
        return ofServer(config, each.name, own).map((check, index) => ({ ...check, isNeeded: own[index]?.required }))
      }),
    )
    for (const each of backends.values()) await each.close()
    const failed = checks.flat().filter(({ ok }) => !ok)
    const fatal = failed.filter(isFatal)
    if (fatal.length > 0)
      throw new Error(`service: the server would not start here\n${fatal.map(describeCheck).join('\n')}`)
    return failed.filter(({ isNeeded, isolation }) => isNeeded || isolation !== undefined).map(describeCheck)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Throws a ConfigError when the model has no provider, or the provider has no key. */
export function assertModelIn(config: Config, variables: Readonly<Record<string, string>>, file: string): void {
  try {
    assertModel(config.models, variables)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new ConfigError([
      ...error.problems,
      `the service has the variables of ${file}, and keys that are set for this command`,
    ])
  }
}

/** The directory, or its nearest parent that exists. */
const nearest = (path: string): string => (existsSync(path) ? path : nearest(dirname(path)))
