import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Guard, startGuard } from '../temporary/cleaner.ts'
import { newDataDirectory } from '../temporary/data-directory.ts'
import { destroyAll } from '../temporary/destroy-all.ts'
import { type BenchServer, startServer } from './server.ts'

/** A temporary data directory for the servers of one executable. */
export interface Place {
  readonly directory: string
  readonly executable: string
  /** Starts a server on the directory; only one may run at a time. */
  serve(flags?: readonly string[], options?: ServeOptions): Promise<BenchServer>
  /** Runs a command of the executable and returns what it prints. Throws when it fails. */
  run(...args: string[]): Promise<string>
  /** Stops the server, destroys its sandboxes and removes the directory. */
  close(): Promise<void>
}

export interface ServeOptions {
  /** How many sandboxes are kept ready. By default the executable decides. */
  spares?: number
  /** Whether no limit holds for single keys and addresses. */
  isUnlimited?: boolean
}

export interface PlaceOptions {
  executable: string
  /** Where the directory is made. */
  parent: string
  /** Flags of each server, and of the command that removes its sandboxes. */
  settings: readonly string[]
  signal: AbortSignal
}

const UNLIMITED = [
  ...['requests', 'runs', 'streams'].flatMap(counted => [`key.${counted}=0`, `address.${counted}=0`]),
  // On a busy machine most of a thousand readers are connected before the first has shown its key.
  'address.connections=0',
]

/** The only variables of this process that the measured executable gets. */
const KEPT = [
  'PATH',
  'HOME',
  'TMPDIR',
  'DOCKER_HOST',
  'DOCKER_CERT_PATH',
  'DOCKER_TLS_VERIFY',
  'E2B_API_KEY',
  'E2B_DOMAIN',
]
const environment = () =>
  Object.fromEntries(KEPT.flatMap(name => (process.env[name] === undefined ? [] : [[name, process.env[name]]])))

/** Opens a place. After `close` nothing of it is left; when this process is killed, another one removes it. */
export async function openPlace({ executable, parent, settings, signal }: PlaceOptions): Promise<Place> {
  const directory = join(parent, newDataDirectory())
  const order = { dataDirectory: directory, settings }
  const guard = await startGuard(order)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  let server: BenchServer | undefined
  const spawn = { executable, env: environment() }
  return {
    directory,
    executable,
    async serve(flags = [], { spares, isUnlimited = false } = {}) {
      signal.throwIfAborted()
      const all = [...settings, '--data-dir', directory, '--port', '0', '--grace-ms', '0', ...flags]
      if (spares !== undefined && (await hasFlag(executable, 'spares'))) all.push('--spares', `${spares}`)
      if (isUnlimited) all.push('--requests-per-key', '0')
      if (isUnlimited && (await hasFlag(executable, 'limit'))) all.push(...UNLIMITED.flatMap(each => ['--limit', each]))
      server = await startServer({ ...spawn, flags: all, signal, log: join(directory, 'bench.log') })
      return server
    },
    async run(...args) {
      const child = Bun.spawn([executable, ...args], { env: spawn.env, stdio: ['ignore', 'pipe', 'pipe'] })
      const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
      if (code !== 0) throw new Error(`${args.slice(0, 2).join(' ')}: ${stderr.trim()}`)
      return stdout
    },
    close: () => remove(guard, order, () => server?.stop()),
  }
}

async function remove(
  guard: Guard,
  order: Parameters<typeof destroyAll>[0],
  stop: () => Promise<void> | undefined,
): Promise<void> {
  let isClean = false
  try {
    await stop()
    await destroyAll(order)
    await rm(order.dataDirectory, { recursive: true, force: true })
    isClean = true
  } finally {
    await guard.dismiss(isClean)
  }
}

/** An older executable may not know the flag. */
async function hasFlag(executable: string, name: string): Promise<boolean> {
  const child = Bun.spawn([executable, 'serve', '--help'], { stdio: ['ignore', 'pipe', 'ignore'] })
  return (await child.stdout.text()).includes(`--${name} `)
}
