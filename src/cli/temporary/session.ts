import { mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Caller } from '../../core/access/caller.ts'
import { readAgentFiles } from '../../core/agents/agent-files.ts'
import type { Runtime } from '../../core/runtime.ts'
import { withoutZeroLimits } from '../../core/sandboxes/environment-start.ts'
import { cloneRepository } from '../../core/sandboxes/git.ts'
import { createSandbox, removeSandbox } from '../../core/sandboxes/sandboxes.ts'
import { runSetUp } from '../../core/sandboxes/set-up.ts'
import { findAgent, saveAgent } from '../../db/agents.ts'
import { wordsOf } from '../../errors.ts'
import type { AgentInput } from '../../model/agent.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Environment } from '../../plugin-api/index.ts'
import { readConfig } from '../../start/config.ts'
import { createLog } from '../../start/log.ts'
import { prepare } from '../../start/prepare.ts'
import { createRuntime } from '../../start/runtime.ts'
import { UsageError } from '../command-line.ts'
import { createProgress, type Progress } from '../progress.ts'
import { startGuard } from './cleaner.ts'
import { copyIn } from './copy-in.ts'
import { copyOut } from './copy-out.ts'
import { newDataDirectory } from './data-directory.ts'
import type { OneOff } from './flags.ts'
import { FAILED, listenForStop } from './stop.ts'

/** One temporary sandbox while it is in use. */
export interface Session {
  runtime: Runtime
  caller: Caller
  sandbox: Sandbox
  environment: Environment
  agent: string
  /** Aborts at SIGINT, SIGTERM and SIGHUP, and when the reader of stdout has left. */
  signal: AbortSignal
}

const CLONE_PATH = '/home/user/repo'

/**
 * Makes a sandbox without a server and passes it to `use`, whose exit code it returns. Its data directory is a new one
 * below --data-dir, or below the system's temporary directory. Nothing of it is left, in every case.
 */
export async function withSandbox(oneOff: OneOff, use: (session: Session) => Promise<number>): Promise<number> {
  // Not the default data directory, because this data is temporary.
  const wanted = await readConfig(
    ['--data-dir', process.env.THREADBOX_DATA_DIR ?? tmpdir(), ...oneOff.settings],
    process.env,
  )
  const parent = wanted.dataDirectory
  await mkdir(parent, { recursive: true })
  const dataDirectory = join(parent, newDataDirectory())
  const guard = await startGuard({ dataDirectory, settings: oneOff.settings })
  const stop = listenForStop()
  const progress = createProgress({ isQuiet: oneOff.verbose })
  let isClean = true
  // The guard cleans up what fails here, as on a full disk; such a failure must not hide why the command failed.
  const tidy: Tidy = work =>
    work().catch(() => {
      isClean = false
    })
  try {
    progress.say('looking at what is here')
    await mkdir(dataDirectory, { mode: 0o700 })
    const log = oneOff.verbose ? createLog(wanted.logLevel) : progress.note
    const opened = await createRuntime({ ...wanted, dataDirectory }, { log })
    const teamId = await prepare(opened)
    try {
      const code = await useSandbox(opened.runtime, teamId, oneOff, stop.signal, { tidy, progress }, use)
      return stop.exitCode() ?? code
    } finally {
      await tidy(() => opened.runtime.runs.close(0))
      await tidy(() => opened.close())
    }
  } catch (error) {
    const stopped = stop.exitCode()
    if (stopped !== undefined) return stopped
    if (error instanceof Error && 'exitCode' in error) throw error
    throw Object.assign(new Error(wordsOf(error)), { exitCode: FAILED })
  } finally {
    progress.end()
    if (isClean) await tidy(() => rm(dataDirectory, { recursive: true, force: true }))
    await guard.dismiss(isClean)
    stop.close()
  }
}

type Tidy = (work: () => Promise<void>) => Promise<void>

async function useSandbox(
  runtime: Runtime,
  teamId: string,
  oneOff: OneOff,
  signal: AbortSignal,
  { tidy, progress }: { tidy: Tidy; progress: Progress },
  use: (session: Session) => Promise<number>,
): Promise<number> {
  const { db, config } = runtime
  const caller: Caller = { teamId }
  const agent = await getAgentInput(oneOff, [...runtime.engines.keys()], slug => findAgent(db, teamId, slug))
  const { setup } = agent.sandbox
  const cwd = agent.sandbox.cwd ?? (oneOff.clone === undefined ? undefined : CLONE_PATH)
  // The set-up commands run later: they may need the files and the repository.
  saveAgent(db, teamId, { ...agent, sandbox: { ...agent.sandbox, setup: [], ...(cwd !== undefined && { cwd }) } })
  progress.say('making the sandbox')
  const sandbox = await createSandbox(runtime, caller, { agent: agent.slug, envs: oneOff.envs }, signal)
  try {
    const environment = await runtime.environments.get(sandbox)
    signal.throwIfAborted()
    if (oneOff.clone !== undefined) {
      const token = process.env.THREADBOX_GIT_TOKEN
      const request = { url: oneOff.clone, path: sandbox.cwd, ...(token && { token }) }
      progress.say('cloning the repository')
      await cloneRepository(runtime, { sandbox, environment }, request, {}, signal)
    }
    progress.say('copying files in')
    await copyIn(environment, oneOff.files, sandbox.cwd, progress.count)
    for (const index of setup.keys()) {
      progress.say(`running set-up command ${index + 1} of ${setup.length}`)
      await runSetUp(environment, setup, index, { cwd: sandbox.cwd, env: sandbox.envs, signal })
    }
    progress.end()
    const code = await use({ runtime, caller, sandbox, environment, agent: agent.slug, signal })
    const { diskMb } = withoutZeroLimits({ ...config.limits, ...agent.sandbox.limits })
    const maxBytes = diskMb === undefined ? Number.POSITIVE_INFINITY : diskMb * 1024 * 1024
    if (oneOff.outs.length > 0) progress.say('copying files out')
    const problems = await copyOut(environment, oneOff.outs, { cwd: sandbox.cwd, maxBytes })
    progress.end()
    for (const problem of problems) console.error(`threadbox: ${problem}`)
    return code === 0 && problems.length > 0 ? FAILED : code
  } finally {
    await tidy(() => removeSandbox(runtime, sandbox))
  }
}

/** Finds the agent of a file or of a slug. Throws a UsageError when there is none. */
async function getAgentInput(
  { agent: named = 'echo' }: OneOff,
  engines: readonly string[],
  find: (slug: string) => AgentInput | undefined,
): Promise<AgentInput> {
  if (!named.includes('/') && !named.endsWith('.json')) {
    const found = find(named)
    if (found) return found
    const remedy =
      named === 'coder' ? "it wants a model: set a provider's key or --model" : 'name a file, or give --agents'
    throw new UsageError(`--agent: there is no agent ${named}; ${remedy}`)
  }
  const [agent, ...more] = await readAgentFiles(named, engines).catch(error => {
    throw new UsageError(`--agent: ${wordsOf(error)}`)
  })
  if (!agent || more.length > 0) throw new UsageError(`--agent: ${named} is not the file of one agent`)
  return agent
}
