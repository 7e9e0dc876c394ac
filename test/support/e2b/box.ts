import { randomBytes } from 'node:crypto'
import { newId } from '../../../src/db/id.ts'
import { runCommand } from '../../../src/environment/run-command.ts'
import type { Backend } from '../../../src/plugin-api/index.ts'

/** A sandbox of the fake. */
export type Box = Awaited<ReturnType<typeof createBox>>

interface Wanted {
  templateID: string
  metadata?: Record<string, string>
  timeout?: number
  autoPause?: boolean
  network?: unknown
  allow_internet_access?: boolean
  envVars?: Record<string, string>
  interpreter: boolean
  snapshot?: string
  internet?: number
}

/** All processes but pid 1, which is the jail's, and this shell. */
const signalAll = (name: string) =>
  `for p in /proc/[0-9]*; do p=\${p#/proc/}; [[ $p != 1 && $p != $$ ]] && kill -${name} $p; done 2>/dev/null; true`

const ENVD_PORT = 49_983
const INTERPRETER_PORT = 49_999

/** A machine's, with a bound on what a fork bomb takes of the one that all of them share. */
const limits = { memoryMb: 1024, processes: 600, cpus: 2, diskMb: 128 }

export async function createBox(backend: Backend, daemon: string, wanted: Wanted) {
  const {
    templateID,
    metadata = {},
    timeout = 15,
    autoPause = false,
    interpreter,
    snapshot,
    internet,
    envVars = {},
  } = wanted
  const environment = await backend.create({ id: newId('env'), limits, ...(snapshot !== undefined && { snapshot }) })
  const id = `i${randomBytes(10).toString('hex')}`
  const token = randomBytes(16).toString('hex')
  const { allowPublicTraffic = true } = (wanted.network ?? {}) as { allowPublicTraffic?: boolean }
  const trafficToken = allowPublicTraffic ? undefined : randomBytes(16).toString('hex')
  const startedAt = new Date()
  const connections = new Set<() => void>()
  let timer: Timer | undefined
  let endAt = new Date()
  let isStopped = false
  let pausing: Promise<unknown> = Promise.resolve()

  const startDaemon = async () => {
    const { stdout } = await runCommand(environment, { command: 'tr "\\0" "\\n" </proc/1/cmdline | head -n 4' })
    await environment.files.write('/usr/local/envd.js', Buffer.from(daemon))
    await environment.spawn({
      command: [...stdout.trim().split('\n'), 'run', '/usr/local/envd.js'],
      env: {
        BUN_BE_BUN: '1',
        ENVD_TOKEN: token,
        ENVD_DEFAULTS: JSON.stringify(envVars),
        ...(interpreter && { INTERPRETER: '1' }),
        ...(internet && { INTERNET: String(internet) }),
      },
    })
    const isOpen = async (port: number) => {
      const connection = await environment.connect(port).catch(() => undefined)
      connection?.destroy()
      return connection !== undefined
    }
    // A template's own programs run when a sandbox of it begins.
    for (const port of [ENVD_PORT, ...(interpreter ? [INTERPRETER_PORT] : [])])
      while (!(await isOpen(port))) await Bun.sleep(10)
  }

  const box = {
    id,
    environment,
    /** What a request to any port but the daemon's must show; undefined: nothing. */
    trafficToken,
    state: 'running' as 'running' | 'paused',
    network: wanted.network,
    allowsInternet: wanted.allow_internet_access,
    envVars: wanted.envVars,
    /** Connections of clients, which a pause and a kill end. */
    connections,
    onGone: () => {},
    get access() {
      const tokens = { envdAccessToken: token, trafficAccessToken: trafficToken ?? null }
      return { sandboxID: id, templateID, clientID: 'fake', envdVersion: '0.5.9', ...tokens }
    },
    get info() {
      const size = { cpuCount: limits.cpus, memoryMB: limits.memoryMb, diskSizeMB: limits.diskMb }
      const { trafficAccessToken: _, ...known } = box.access
      return { ...known, ...size, metadata, startedAt, endAt, state: box.state }
    },
    setTimeout(seconds: number, { onlyLonger = false } = {}) {
      const wantedEnd = new Date(Date.now() + seconds * 1000)
      if (onlyLonger && wantedEnd < endAt) return
      endAt = wantedEnd
      clearTimeout(timer)
      timer = setTimeout(() => void (autoPause ? box.pause(true) : box.kill()), seconds * 1000)
    },
    async pause(keepMemory: boolean) {
      if (box.state === 'paused') return
      box.state = 'paused'
      clearTimeout(timer)
      for (const cut of connections) cut()
      isStopped = keepMemory
      pausing = keepMemory
        ? runCommand(environment, { command: signalAll('STOP') })
        : (environment.pause?.() ?? Promise.resolve())
      await pausing
    },
    async resume() {
      if (box.state === 'running') return
      await pausing
      if (isStopped) await runCommand(environment, { command: signalAll('CONT') })
      else await startDaemon()
      box.state = 'running'
      endAt = new Date()
    },
    async kill() {
      box.onGone()
      clearTimeout(timer)
      box.state = 'paused'
      for (const cut of connections) cut()
      await environment.destroy()
    },
  }
  await startDaemon()
  box.setTimeout(timeout)
  return box
}
