import type { Caller } from '../core/access/caller.ts'
import type { Config } from '../core/config.ts'
import type { Log, Runtime } from '../core/runtime.ts'
import { createSandbox, removeSandbox } from '../core/sandboxes/sandboxes.ts'
import { saveAgent } from '../db/agents.ts'
import { resolveBySystem } from '../egress/resolve.ts'
import type { Sandbox } from '../model/sandbox.ts'
import type { Environment, Plugin } from '../plugin-api/index.ts'
import { getBackend } from '../start/backend.ts'
import { prepare } from '../start/prepare.ts'
import { createRuntime } from '../start/runtime.ts'
import { openBait } from './bait.ts'
import { makeHostFiles } from './files-of-host.ts'
import { startPeer } from './start-peer.ts'
import type { Subject, SubjectSandbox } from './subject.ts'

export interface SubjectOptions {
  /** The selftest tries this configuration's backend. The data directory must be the selftest's own: see `configOf`. */
  config: Config
  /** A path that does not exist yet and that ordinary users can reach. The caller removes it. */
  hostDirectory: string
  log: Log
  signal: AbortSignal
  /** The plugins to load; this build's own when it is absent. */
  plugins?: readonly Plugin[]
}

export interface OpenSubject {
  subject: Subject
  /** Removes every sandbox and closes the server. Rejects when something of them may be left. */
  close(): Promise<void>
}

/** Derives the selftest's configuration of one backend from the operator's. It leaves out all other things that a server does. */
export function configOf(
  config: Config,
  { backend, runtime, dataDirectory }: { backend: string; runtime?: string; dataDirectory: string },
): Config {
  const { agentsDirectory: _, auditFile: __, backups: ___, metricsAddress: ____, ...rest } = config
  return {
    ...rest,
    ...{ backend, backends: [backend], dataDirectory, spares: 0 },
    ...(backend === 'docker' && { dockerRuntimes: runtime === undefined ? [] : [runtime] }),
  }
}

/**
 * Starts a server's runtime, without its HTTP interface, and makes the two sandboxes. Throws when something is missing, and the reason of
 * `signal` when that aborts; only the two directories are left then.
 */
export async function openSubject({
  config,
  hostDirectory,
  log,
  signal,
  plugins,
}: SubjectOptions): Promise<OpenSubject> {
  const { dataDirectory, backend: backendName } = config
  const answers = new Map<string, () => readonly string[]>()
  const resolve = async (name: string) => answers.get(name)?.() ?? (await resolveBySystem(name))
  const [secret, peer] = [`secret-${crypto.randomUUID()}`, `peer-${crypto.randomUUID()}`]
  await makeHostFiles(hostDirectory, secret)
  const opened = await createRuntime(config, { log, reach: { resolve }, ...(plugins && { plugins }) })
  const { runtime } = opened
  /** The functions that close the parts. They are called in reverse order. */
  const closing: (() => Promise<void>)[] = [() => opened.close()]
  const close = async () => {
    const failures: unknown[] = []
    for (const part of closing.toReversed()) await part().catch(error => void failures.push(error))
    if (failures.length > 0) throw failures[0]
  }
  try {
    const caller: Caller = { teamId: await prepare(opened) }
    const sandboxes = createSandboxes(runtime, caller, signal)
    closing.push(sandboxes.removeAll)
    const [environment, other] = await Promise.all([sandboxes.create(), sandboxes.create()])
    const bait = await openBait()
    closing.push(bait.close)
    const backend = getBackend(runtime.backends, backendName)
    const [chosen] = backendName === 'docker' ? config.dockerRuntimes : []
    const subject: Omit<Subject, 'peerKeeps'> = {
      ...{ backend, backendName, environment, other, dataDirectory, hostDirectory, secret, peer, bait, signal },
      ...(chosen !== undefined && { runtime: chosen }),
      isolation: environment.isolation ?? backend.isolation,
      isRoot: process.getuid?.() === 0,
      create: sandboxes.create,
      remove: sandboxes.remove,
      answerName(name, answer) {
        answers.set(name, answer)
        return { [Symbol.dispose]: () => void answers.delete(name) }
      },
    }
    return { subject: { ...subject, peerKeeps: await startPeer(subject) }, close }
  } catch (error) {
    await close().catch(failure => log(`selftest: ${String(failure)}`, 'error'))
    throw error
  }
}

/** Makes and removes sandboxes as a server does for its clients. */
function createSandboxes(runtime: Runtime, caller: Caller, signal: AbortSignal) {
  const made = new Map<string, Sandbox>()
  let count = 0
  /** A second removal of a sandbox waits for the first. */
  const removing = new Map<string, Promise<void>>()
  const removeOne = (sandbox: Sandbox): Promise<void> => {
    const running = removing.get(sandbox.id) ?? removeSandbox(runtime, sandbox)
    removing.set(sandbox.id, running)
    return running.then(() => void made.delete(sandbox.environmentId))
  }
  return {
    async create({ limits = {}, ...rules }: SubjectSandbox = {}): Promise<Environment> {
      const slug = `selftest-${++count}`
      const sandbox = { files: {}, envs: {}, setup: [], limits }
      saveAgent(runtime.db, caller.teamId, { slug, name: 'Selftest', engine: 'echo', sandbox, options: {} })
      const row = await createSandbox(runtime, caller, { agent: slug, ...rules }, signal)
      made.set(row.environmentId, row)
      return await runtime.environments.get(row)
    },
    async remove({ id }: Environment): Promise<void> {
      const sandbox = made.get(id)
      if (sandbox) await removeOne(sandbox)
    },
    async removeAll(): Promise<void> {
      await Promise.all([...made.values()].map(removeOne))
    },
  }
}
