import { join } from 'node:path'
import { wordsOf } from './errors.ts'
import type { Backend, Engine } from './plugin-api/index.ts'
import type { LoadPlugins, Plugins } from './start/runtime.ts'

/** The exit code. Each command loads what it needs and no more: the guest starts with each sandbox. */
async function main(args: readonly string[]): Promise<number> {
  const [first, second] = args
  switch (second === '--help' ? undefined : first) {
    case 'guest':
      if (second === 'container') (await import('./guest/inside/container.ts')).serveContainer()
      else if (second === 'bridge') return await (await import('./guest/inside/bridge.ts')).bridge()
      else (await import('./guest/inside/serve.ts')).serveGuest(3)
      return await new Promise<never>(() => {})
    case 'tools':
      return await (await import('./guest/tools/main.ts')).serveTools(args.slice(1))
    case 'guard':
      await (await import('./cli/temporary/cleaner.ts')).guard(loadPlugins)
      return 0
    case '--version':
      return await runCommand(['version'])
    default:
      return await runCommand(args)
  }
}

async function runCommand(args: readonly string[]): Promise<number> {
  const { helpWantedOf, readCommand } = await import('./cli/command-line.ts')
  const topic = helpWantedOf(args)
  if (topic) {
    console.log((await import('./cli/help.ts')).help(topic))
    return 0
  }
  const { name, given } = await readCommand(args)
  switch (name) {
    case 'serve':
      await (await import('./cli/serve.ts')).serve(given, loadPlugins)
      return 0
    case 'doctor':
      return (await (await import('./cli/doctor.ts')).doctor(given, loadPlugins)) ? 0 : 1
    case 'strays':
      await (await import('./cli/strays.ts')).strays(given)
      return 0
    case 'keys':
      await (await import('./cli/keys.ts')).keys(given)
      return 0
    case 'agents':
      await (await import('./cli/agents.ts')).agents(given, loadPlugins)
      return 0
    case 'base':
      await (await import('./cli/base.ts')).base(given, async directory =>
        (await import('nsjail-wrapper')).openBases(directory),
      )
      return 0
    case 'chat':
      return (await (await import('./cli/chat.ts')).chat(given)) ? 0 : 1
    case 'sandboxes':
      await (await import('./cli/sandboxes.ts')).sandboxes(given)
      return 0
    case 'threads':
      await (await import('./cli/threads.ts')).threads(given)
      return 0
    case 'run':
      return await (await import('./cli/run.ts')).run(given, loadPlugins)
    case 'exec':
      return await (await import('./cli/exec.ts')).exec(given, loadPlugins)
    case 'service':
      return (await (await import('./cli/service/service.ts')).service(given, loadPlugins)) ? 0 : 1
    case 'plugin':
      return (await (await import('./cli/plugin.ts')).plugin(given, loadPlugins)) ? 0 : 1
    case 'shell':
      return await (await import('./cli/shell.ts')).shell(given)
    case 'licenses':
      await (await import('./cli/licenses.ts')).licenses()
      return 0
    case 'version':
      console.log((await import('../package.json')).version)
      return 0
    default:
      throw new Error(`${name} is in the table of commands and not here`)
  }
}

/** The executable that sandboxes get as their guest: this one, or the last build when run from source. */
const guestExecutable = (): string =>
  import.meta.dir.startsWith('/$bunfs/') ? process.execPath : join(import.meta.dir, '../dist/threadbox')

/** The plugins of this build. Nothing of them runs before its first use. */
const loadPlugins: LoadPlugins = async (config, context) => {
  const { nsjailPath, dockerImage, e2bTemplate: template, publicUrl, idleMs } = config
  const [{ nsjail }, { docker }, { e2b }, { echo }, { aiSdk }, { acp, claudeCode }] = await Promise.all([
    import('nsjail-wrapper'),
    import('../plugins/docker/index.ts'),
    import('../plugins/e2b/index.ts'),
    import('../plugins/echo/index.ts'),
    import('../plugins/ai-sdk/index.ts'),
    import('../plugins/agent-programs/index.ts'),
  ])
  const executable = guestExecutable()
  const plugins = [
    nsjail({ executable, idleMs, ...(nsjailPath && { nsjailPath }) }),
    docker({ executable, idleMs, image: dockerImage }),
    e2b({ connection: process.env, template, idleMs, ...(publicUrl !== undefined && { publicUrl }) }),
    echo,
    aiSdk,
    claudeCode,
    acp,
  ]
  const backends = new Map<string, Backend>()
  const engines = new Map<string, Engine>()
  const files = new Map<string, string>()
  for (const { name, backend, engine } of plugins) {
    if (backend) backends.set(name, backend(context))
    if (engine) engines.set(name, engine(context))
  }
  let external: Plugins['external'] = []
  if (config.plugins.length > 0) {
    const { loadExternal } = await import('./plugin-loader/load.ts')
    const taken = plugins.map(({ name }) => name)
    const loaded = await loadExternal(config.plugins, { taken, context, guestExecutable: executable })
    for (const { backend, file } of loaded.backends) {
      backends.set(backend.name, backend)
      files.set(backend.name, file)
    }
    for (const engine of loaded.engines) engines.set(engine.name, engine)
    external = loaded.files
  }
  return { backends, engines, files, external }
}

try {
  process.exit(await main(process.argv.slice(2)))
} catch (error) {
  console.error(`threadbox: ${wordsOf(error)}`)
  process.exit(error instanceof Error && 'exitCode' in error ? Number(error.exitCode) : 1)
}
