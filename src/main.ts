import { join } from 'node:path'
import type { LoadPlugins, Plugins } from './cli/open-runtime.ts'
import { messageOf } from './errors.ts'
import type { Backend, Engine } from './plugin.ts'

/** The exit code. Each command loads what it needs and no more: the guest starts with each sandbox. */
async function main([command = 'help', ...args]: readonly string[]): Promise<number> {
  const own = args.includes('--') ? args.slice(0, args.indexOf('--')) : args
  switch (own.some(isHelp) || isHelp(command) ? 'help' : command) {
    case 'guest':
      if (args[0] === 'container') (await import('./guest/container.ts')).serveContainer()
      else if (args[0] === 'bridge') return await (await import('./guest/bridge.ts')).bridge()
      else (await import('./guest/serve.ts')).serveGuest(3)
      return await new Promise<never>(() => {})
    case 'tools':
      return await (await import('./guest/tools/main.ts')).serveTools(args)
    case 'serve':
      await (await import('./cli/serve.ts')).serve(args, loadPlugins)
      return 0
    case 'doctor':
      return (await (await import('./cli/doctor.ts')).doctor(args, loadPlugins)) ? 0 : 1
    case 'keys':
      await (await import('./cli/keys.ts')).keys(args)
      return 0
    case 'agents':
      await (await import('./cli/agents.ts')).agents(args)
      return 0
    case 'base':
      await (await import('./cli/base.ts')).base(args, async directory =>
        (await import('nsjail-wrapper')).openBases(directory),
      )
      return 0
    case 'chat':
      return (await (await import('./cli/chat.ts')).chat(args)) ? 0 : 1
    case 'run':
      return await (await import('./cli/run.ts')).run(args, loadPlugins)
    case 'exec':
      return await (await import('./cli/exec.ts')).exec(args, loadPlugins)
    case 'service':
      return (await (await import('./cli/service/service.ts')).service(args, loadPlugins)) ? 0 : 1
    case 'guard':
      await (await import('./cli/one-off/guard.ts')).guard(loadPlugins)
      return 0
    case 'plugin':
      return (await (await import('./cli/plugin.ts')).plugin(args, loadPlugins)) ? 0 : 1
    case 'shell':
      return await (await import('./cli/shell.ts')).shell(args)
    case 'licenses':
      await (await import('./cli/licenses.ts')).licenses()
      return 0
    case 'version':
    case '--version':
      console.log((await import('../package.json')).version)
      return 0
    case 'help':
      ;(await import('./cli/help.ts')).help()
      return 0
    default:
      console.error(`threadbox: no such command: ${command}. See: threadbox help`)
      return 2
  }
}

const isHelp = (word: string): boolean => word === '--help' || word === '-h'

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
    const { loadExternal } = await import('./external/load.ts')
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
  console.error(`threadbox: ${messageOf(error)}`)
  process.exit(error instanceof Error && 'exitCode' in error ? Number(error.exitCode) : 1)
}
