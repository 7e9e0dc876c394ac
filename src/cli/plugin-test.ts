import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { newId } from '../db/id.ts'
import type { PluginContext } from '../plugin-api/index.ts'
import { checkedBackend } from '../plugin-loader/checked-backend.ts'
import { describeBackend } from '../plugin-suite/backend.ts'
import { describeEngine } from '../plugin-suite/engine.ts'
import { createRunner } from '../plugin-suite/runner.ts'
import type { EngineContract } from '../plugin-suite/scene.ts'
import { describeCheck, getBackend, isFatal } from '../start/backend.ts'
import { readConfig } from '../start/config.ts'
import { closedContext, loadPlugins, type Plugins } from '../start/load-plugins.ts'

const limits = { memoryMb: 1024, processes: 200, cpus: 2, diskMb: 512 }

/** For a file without a contract: the tests that need no scene still run. */
const noScenes: EngineContract = { stage: () => undefined }

/** Runs the contract suites on the plugins of a file, in a new data directory. False when a test failed. */
export async function testPlugin(file: string, flags: readonly string[]): Promise<boolean> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'threadbox-plugin-'))
  try {
    const config = await readConfig([...flags, '--plugin', resolve(file), '--data-dir', dataDirectory], process.env)
    const context = closedContext(dataDirectory)
    const loaded = await loadPlugins(config, context)
    try {
      const external = loaded.external.filter(each => each.file === resolve(file))
      return await runSuites({ ...loaded, external }, config.backend, context)
    } finally {
      for (const each of loaded.backends.values()) await each.close()
    }
  } finally {
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

async function runSuites(loaded: Plugins, backendName: string, context: PluginContext): Promise<boolean> {
  const { expect } = await import('expect')
  const runner = createRunner(expect, say)
  const stop = () => runner.stop()
  process.once('SIGINT', stop)
  const plugins = loaded.external.flatMap(({ plugins, contract }) => plugins.map(plugin => ({ ...plugin, contract })))
  for (const { name, backend, engine, contract } of plugins) {
    if (backend) {
      const opened = getBackend(loaded.backends, name)
      const failed = (await opened.check()).filter(isFatal)
      if (failed.length > 0) throw new Error(`${name} cannot run here:\n${failed.map(describeCheck).join('\n')}`)
      const open = async (serveProxy: PluginContext['serveProxy']) =>
        checkedBackend(backend({ ...context, serveProxy }))
      describeBackend(runner.kit, name, open, opened.egress)
    }
    if (!engine) continue
    if (!contract) say(`note: the file exports no contract, so ${name} is given no scene to play`)
    const under = { reopen: () => engine(context), ...(contract ?? noScenes), engine: engine(context) }
    describeEngine(
      runner.kit,
      name,
      () => under,
      async () => {
        const environment = await getBackend(loaded.backends, backendName).create({ id: newId('env'), limits })
        return { environment, close: () => environment.destroy() }
      },
    )
  }
  const { passed, failed, skipped } = await runner.run()
  process.off('SIGINT', stop)
  say(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} not run` : ''}`)
  return failed === 0 && skipped === 0
}

const say = (line: string): void => console.log(line)
