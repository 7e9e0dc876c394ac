import { afterAll, beforeAll } from 'bun:test'
import { closeSync, globSync, mkdirSync, mkdtempSync, openSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { dockerApi } from './docker-api.ts'
import { processIds, readText } from './leftovers.ts'
import { until } from './until.ts'

/** The directory of an engine's images. It is on a disk, which can be full, also where temporary files are in memory. */
export const diskDirectory = '/var/tmp'

export interface DockerdOptions {
  /** More of its flags. */
  flags?: readonly string[]
  /** Further settings for its daemon.json. */
  settings?: () => object
  /** Prepares what they name. */
  before?: () => Promise<void>
}

/** A Docker engine of its own for the tests of a file, with nothing of the machine's. */
export function useDockerd(options: DockerdOptions = {}): Dockerd {
  const dockerd = new Dockerd(options)
  beforeAll(async () => {
    await options.before?.()
    await dockerd.open()
  }, 60_000)
  afterAll(() => dockerd.close(), 60_000)
  return dockerd
}

export class Dockerd {
  readonly directory = mkdtempSync(join(diskDirectory, 'threadbox-dockerd-'))
  readonly socket = join(this.directory, 'docker.sock')
  readonly host = `unix://${this.socket}`
  readonly api = dockerApi(this.socket)
  #process: Bun.Subprocess | undefined

  constructor(readonly options: DockerdOptions) {}

  get #data(): string {
    return join(this.directory, 'data')
  }

  async open(): Promise<void> {
    mkdirSync(this.#data)
    writeFileSync(join(this.directory, 'daemon.json'), JSON.stringify(this.options.settings?.() ?? {}))
    await this.start()
  }

  /** Resolves when it answers. */
  async start(): Promise<void> {
    const { flags = [] } = this.options
    const name = basename(this.directory)
    const log = join(this.directory, 'log')
    const command = [
      'dockerd',
      ...['--config-file', join(this.directory, 'daemon.json'), '--host', this.host, '--data-root', this.#data],
      ...['--exec-root', join(this.directory, 'exec'), '--pidfile', join(this.directory, 'pid')],
      ...['--storage-driver', 'overlay2', '--cgroup-parent', `/${name}`, '--bridge=none', '--iptables=false'],
      ...['--ip6tables=false', '--ip-forward=false', '--ip-masq=false', '--userland-proxy=false'],
      ...flags,
    ]
    const written = openSync(log, 'a')
    const child = Bun.spawn(command, { stdio: ['ignore', written, written] })
    closeSync(written)
    this.#process = child
    const answers = () =>
      fetch('http://docker/_ping', { unix: this.socket }).then(
        ({ ok }) => ok,
        () => false,
      )
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`dockerd ended: ${readText(log).slice(-2000)}`)
      return await answers()
    })
  }

  /** It has no moment to tidy up; what runs in containers goes on without it. */
  async kill(): Promise<void> {
    this.#process?.kill('SIGKILL')
    await this.#process?.exited
    // Its containerd dies with it. Where nobody reaps that, the next one would wait for it.
    rmSync(join(this.directory, 'exec/containerd/containerd.pid'))
  }

  /** Its containers end with it. */
  async stop(): Promise<void> {
    this.#process?.kill('SIGTERM')
    await this.#process?.exited
  }

  /** Ends it and removes all that it had. Throws when something of it is left. */
  async close(): Promise<void> {
    if (this.#process?.exitCode === null) await this.stop()
    await removeTraces(this.directory)
  }
}

/** Ends what an engine has left running under a directory, and removes the directory, its mounts and its cgroups. */
export async function removeTraces(directory: string): Promise<void> {
  const name = basename(directory)
  const isOf = (pid: number) =>
    readText(`/proc/${pid}/cmdline`).includes(`${directory}/`) || readText(`/proc/${pid}/cgroup`).includes(`/${name}/`)
  const traces = () => processIds().filter(isOf)
  await until(() => {
    const left = traces()
    for (const pid of left) killIfAlive(pid)
    return left.length === 0
  })
  const mounts = readText('/proc/self/mountinfo')
    .split('\n')
    .map(line => line.split(' ')[4] ?? '')
    .filter(path => path.startsWith(`${directory}/`))
  for (const path of mounts.reverse()) await run('umount', '-l', path)
  const cgroups = globSync(`/sys/fs/cgroup/{,*/}${name}/{,*/}cgroup.procs`).map(dirname)
  for (const path of cgroups.sort().reverse()) rmdirSync(path)
  rmSync(directory, { recursive: true })
}

export async function run(...command: string[]): Promise<void> {
  const { exited, stdout, stderr } = Bun.spawn(command, { stdio: ['ignore', 'pipe', 'pipe'] })
  const [code, ...said] = await Promise.all([exited, stdout.text(), stderr.text()])
  if (code !== 0) throw new Error(`${command.join(' ')}: ${said.join('').slice(-2000)}`)
}

/** It may end between the look and the signal. */
function killIfAlive(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}
