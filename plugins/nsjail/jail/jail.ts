import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { type FileHandle, open, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { EnvironmentPaths } from '../host/layout.ts'
import { listenUnix } from '../host/linux.ts'
import { findProcess, hasEnded } from '../host/process.ts'
import { tailOf } from '../host/stderr.ts'

const DEAD_WITHIN_MS = 10_000
/** After this long nsjail itself is killed; the kernel then kills every process of the jail. */
const KILL_NSJAIL_AFTER_MS = 1000
const POLL_MS = 1

/** The pid file has this while a jail is launched, and keeps it when the server dies in that moment. */
const LAUNCHING = 'launching'

/** A jail must not inherit the server's OOM score, above all not its protection. */
const withoutScore = ['/bin/sh', '-c', 'echo 0 2>/dev/null >/proc/$$/oom_score_adj; exec "$@"', 'sh']

const hasScore = () => readFileSync('/proc/self/oom_score_adj', 'utf8').trim() !== '0'

/** Starts a jail in a session of its own, with a listening socket for the guest. It outlives this process. Returns its pid. */
export function launchJail(paths: EnvironmentPaths, nsjail: string): number {
  const socket = listenUnix(paths.socket)
  const log = openSync(paths.log, 'w')
  try {
    writeFileSync(paths.pid, LAUNCHING)
    const command = [...(hasScore() ? withoutScore : []), nsjail, '--config', paths.config]
    const child = Bun.spawn(command, { stdio: ['ignore', log, log, socket.number], detached: true, env: {} })
    notePid(paths, child.pid)
    child.unref()
    return child.pid
  } finally {
    closeSync(log)
    socket.close()
  }
}

const notePid = (paths: EnvironmentPaths, pid: number) => writeFileSync(paths.pid, `${pid} ${paths.key}\n`)

/** Finds the pid of an environment's nsjail, or of a shell that becomes it. Undefined when it does not run. */
export async function findJail(paths: EnvironmentPaths): Promise<number | undefined> {
  const [first, key] = (await readText(paths.pid)).trim().split(' ')
  if (first === LAUNCHING) return findLaunched(paths)
  const pid = Number(first)
  if (!Number.isInteger(pid) || pid <= 1) return undefined
  // The pid may belong to another process by now. The directory may have moved since the jail was started; the id has not.
  const command = (await readText(`/proc/${pid}/cmdline`)).split('\0')
  const ending = `/${paths.id}/${basename(paths.config)}`
  const config = command.find(argument => argument.endsWith(ending))
  return config !== undefined && (key === paths.key || (await isOwn(paths, config, key))) ? pid : undefined
}

/** Finds the jail of a server that died before it had noted the pid. */
async function findLaunched(paths: EnvironmentPaths): Promise<number | undefined> {
  const pids = (await readdir('/proc')).map(Number).filter(Boolean)
  const found: number[] = []
  for (const pid of pids) {
    const command = (await readText(`/proc/${pid}/cmdline`)).split('\0')
    if (command[command.indexOf('--config') + 1] === paths.config) found.push(pid)
  }
  // The jail's first process looks like nsjail until it becomes the guest.
  const children = new Set((await Promise.all(found.map(listChildren))).flat())
  const nsjail = found.find(pid => !children.has(pid))
  if (nsjail !== undefined) notePid(paths, nsjail)
  return nsjail
}

/**
 * Whether the jail belongs to this data directory, and not to one that this is a copy of: the copy has the same file with its pid.
 * Jails of earlier versions have no key in it.
 */
async function isOwn(paths: EnvironmentPaths, config: string, key: string | undefined): Promise<boolean> {
  const [own, its] = await Promise.all([paths.config, config].map(path => stat(path).catch(() => undefined)))
  if (!its) return key === undefined
  return own !== undefined && own.dev === its.dev && own.ino === its.ino
}

/** Kills every process of a jail; resolves when nsjail has ended too. Does nothing when it does not run. */
export async function killJail(paths: EnvironmentPaths): Promise<void> {
  const pid = await findJail(paths)
  if (pid === undefined) return
  const nsjail = findProcess(pid)
  const start = performance.now()
  try {
    while (nsjail && !hasEnded(nsjail)) {
      const waited = performance.now() - start
      if (waited > DEAD_WITHIN_MS) throw new Error(`the jail of ${paths.id} (process ${pid}) does not end`)
      const inside = await listChildren(pid)
      for (const child of inside) kill(child)
      if (inside.length === 0 || waited > KILL_NSJAIL_AFTER_MS) kill(pid)
      await Bun.sleep(POLL_MS)
    }
  } finally {
    nsjail?.close()
  }
}

/** Opens the root of a running jail: its mounts outlive its processes until the file is closed. Undefined when none runs. */
export async function holdMounts(paths: EnvironmentPaths): Promise<FileHandle | undefined> {
  const [first] = await listChildren((await findJail(paths)) ?? 0)
  return first === undefined ? undefined : await open(`/proc/${first}/root`).catch(() => undefined)
}

/** Lists the pids of a process's children on the host; of nsjail, the jail's pid 1 once it is there. */
export async function listChildren(pid: number): Promise<number[]> {
  const children = await readText(`/proc/${pid}/task/${pid}/children`)
  return children.split(' ').map(Number).filter(Boolean)
}

export const readLogTail = async (paths: EnvironmentPaths) => tailOf(await readText(paths.log))

export const writeConfig = (paths: EnvironmentPaths, config: string) => writeFile(paths.config, config, { mode: 0o600 })

async function readText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}

/** Kills a process. Does nothing when it has ended. */
export function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
