import { wordsOf } from './errors.ts'

/** Returns the exit code. Each command loads only what it needs, so that the guest in a sandbox starts fast. */
async function main(args: readonly string[]): Promise<number> {
  const [first, second] = args
  // The build's JIT policy leaves what a start runs once uncompiled. A server and a guest say themselves when theirs is over.
  if (first !== 'serve' && first !== 'guest') Bun.unsafe.setJITPolicy(1)
  switch (second === '--help' ? undefined : first) {
    case 'guest':
      if (second === 'container') await (await import('./guest/inside/container.ts')).serveContainer()
      else if (second === 'bridge') return await (await import('./guest/inside/bridge.ts')).bridge()
      else if (second === 'redirect') return (await import('./guest/inside/redirect-own.ts')).redirectOwnNetwork()
      else (await import('./guest/inside/serve.ts')).serveGuest(3)
      return await new Promise<never>(() => {})
    case 'tools':
      return await (await import('./guest/tools/main.ts')).serveTools(args.slice(1))
    case 'guard':
      await (await import('./cli/temporary/cleaner.ts')).guard()
      return 0
    case 'probe':
      return await (await import('./selftest/inside/main.ts')).probe(args.slice(1))
    case 'bench-peer':
      await (await import('./cli/bench/peer.ts')).servePeer()
      return 0
    case '--version':
      return await runCommand(['version'])
    default:
      return await runCommand(args)
  }
}

async function runCommand(args: readonly string[]): Promise<number> {
  const { findHelpTopic, readCommand } = await import('./cli/command-line.ts')
  const topic = findHelpTopic(args)
  if (topic) {
    console.log((await import('./cli/help.ts')).help(topic))
    return 0
  }
  const { name, given } = await readCommand(args)
  switch (name) {
    case 'serve':
      await (await import('./cli/serve.ts')).serve(given)
      return 0
    case 'doctor':
      return (await (await import('./cli/doctor.ts')).doctor(given)) ? 0 : 1
    case 'selftest':
      return await (await import('./cli/selftest/selftest.ts')).selftest(given)
    case 'bench':
      return await (await import('./cli/bench/bench.ts')).bench(given)
    case 'strays':
      await (await import('./cli/strays.ts')).strays(given)
      return 0
    case 'database':
      await (await import('./cli/database.ts')).database(given)
      return 0
    case 'keys':
      await (await import('./cli/keys.ts')).keys(given)
      return 0
    case 'secrets':
      await (await import('./cli/secrets.ts')).secrets(given)
      return 0
    case 'teams':
      await (await import('./cli/teams.ts')).teams(given)
      return 0
    case 'sign-in':
      await (await import('./cli/sign-in.ts')).signIn(given)
      return 0
    case 'audit':
      return await (await import('./cli/audit.ts')).audit(given)
    case 'agents':
      await (await import('./cli/agents.ts')).agents(given)
      return 0
    case 'base':
      await (await import('./cli/base.ts')).base(given)
      return 0
    case 'backup':
      return (await (await import('./cli/backup.ts')).backup(given)) ? 0 : 1
    case 'chat':
      return (await (await import('./cli/chat.ts')).chat(given)) ? 0 : 1
    case 'sandboxes':
      return (await (await import('./cli/sandboxes.ts')).sandboxes(given)) ? 0 : 1
    case 'snapshots':
      await (await import('./cli/snapshots.ts')).snapshots(given)
      return 0
    case 'threads':
      await (await import('./cli/threads.ts')).threads(given)
      return 0
    case 'schedules':
      await (await import('./cli/schedules.ts')).schedules(given)
      return 0
    case 'run':
      return await (await import('./cli/run.ts')).run(given)
    case 'exec':
      return await (await import('./cli/exec.ts')).exec(given)
    case 'service':
      return (await (await import('./cli/service/service.ts')).service(given)) ? 0 : 1
    case 'upgrade':
      await (await import('./cli/upgrade/upgrade.ts')).upgrade(given)
      return 0
    case 'plugin':
      return (await (await import('./cli/plugin.ts')).plugin(given)) ? 0 : 1
    case 'shell':
      return await (await import('./cli/shell.ts')).shell(given)
    case 'licenses':
      await (await import('./cli/licenses.ts')).licenses()
      return 0
    case 'completions':
      await (await import('./cli/completions/completions.ts')).completions(given)
      return 0
    case 'man':
      console.log((await import('./cli/man.ts')).manualPage())
      return 0
    case 'version':
      console.log((await import('../package.json')).version)
      return 0
    default:
      throw new Error(`the command ${name} has no implementation`)
  }
}

async function run(): Promise<never> {
  try {
    process.exit(await main(process.argv.slice(2)))
  } catch (error) {
    console.error(`threadbox: ${wordsOf(error)}`)
    process.exit(error instanceof Error && 'exitCode' in error ? Number(error.exitCode) : 1)
  }
}

if (Bun.isMainThread) await run()
// The one worker that starts from here: see cli/watchdog.ts.
else (await import('./cli/watchdog-thread.ts')).listenForWatch()
