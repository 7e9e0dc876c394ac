import type { Database } from 'bun:sqlite'
import { type CommandOptions, type CommandResult, runCommand } from '../../environment/run-command.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { Agent } from '../../model/agent.ts'
import type { Environment } from '../../plugin-api/index.ts'
import { logAgent } from '../agents/agent-log.ts'
import { withoutValues } from '../agents/without-values.ts'
import type { Bundles, Log } from '../runtime.ts'
import { countingBytes, type OnCreateStep, outputSteps, withoutSecrets } from './create-steps.ts'

export const DEFAULT_CWD = '/home/user'

/** How long one set-up command may take. */
const SETUP_TIMEOUT_MS = 600_000
const TELL_EVERY_MS = 10_000

export interface SetUp {
  /** Name of an archive of files below /home/user. */
  template: string | undefined
  files: Readonly<Record<string, string>>
  cwd: string
  env: Record<string, string>
  commands: readonly string[]
  signal?: AbortSignal
  onStep?: OnCreateStep
}

/** Brings a new environment to where its agent begins: archive, files, directory, commands. Throws setup_failed. */
export async function setUp(
  { db, bundles, log }: { db: Database; bundles: Bundles; log: Log },
  agent: Agent,
  environment: Environment,
  { template, files, cwd, env, commands, signal, onStep }: SetUp,
): Promise<void> {
  const options = { cwd, env, ...(signal && { signal }) }
  try {
    if (template !== undefined) {
      await onStep?.({ type: 'stage', stage: 'archive' })
      await unpackTemplate(environment, bundles, template, signal, onStep)
    }
    if (Object.keys(files).length > 0) await onStep?.({ type: 'stage', stage: 'files' })
    for (const [path, content] of Object.entries(files)) await environment.files.write(path, Buffer.from(content))
    if (cwd !== DEFAULT_CWD) await environment.files.makeDirectory(cwd)
    for (const index of commands.keys()) {
      const output = onStep && outputSteps(onStep, env)
      await onStep?.({ type: 'stage', stage: 'setup', number: index + 1, of: commands.length })
      const { stdout, stderr } = await tellWhile(
        log,
        `${environment.id}: set-up command ${index + 1} of ${commands.length}`,
        () => runSetUp(environment, commands, index, { ...options, ...(output && { onOutput: output.onOutput }) }),
      ).finally(() => output?.end())
      // Not the command itself: it may hold what is no variable, and secret.
      const text = `set-up command ${index + 1} of ${commands.length} is done\n${stdout}${stderr}`
      logAgent(db, agent.id, { source: 'setup', level: 'info', text }, env)
    }
  } catch (error) {
    if (!signal?.aborted) logAgent(db, agent.id, { source: 'setup', level: 'error', text: messageOf(error) }, env)
    throw onStep ? withoutSecrets(error, env) : error
  }
}

/** Runs one of the set-up commands. Throws setup_failed with its output. */
export async function runSetUp(
  environment: Environment,
  commands: readonly string[],
  index: number,
  options: { cwd: string; env: Record<string, string> } & Pick<CommandOptions, 'signal' | 'onOutput'>,
): Promise<CommandResult> {
  const command = commands[index] ?? ''
  const result = await runCommand(environment, { command, timeoutMs: SETUP_TIMEOUT_MS, ...options })
  return assertDone(result, `The set-up command ${index + 1} of ${commands.length}${nameProgram(command)}`, options.env)
}

/** Its first word, to know it by. What follows may hold a secret. */
function nameProgram(command: string): string {
  const [first = '', ...more] = command.trim().split(/\s+/, 2)
  return /^[\w./-]{1,60}$/.test(first) ? ` (${first}${more.length > 0 ? ' …' : ''})` : ''
}

/** Logs from time to time that something is still running. */
async function tellWhile<Result>(log: Log, what: string, work: () => Promise<Result>): Promise<Result> {
  const begun = Date.now()
  const timer = setInterval(() => log(`${what} runs since ${Math.round((Date.now() - begun) / 1000)} s`), TELL_EVERY_MS)
  return await work().finally(() => clearInterval(timer))
}

/** By the environment's own tar: what the archive holds cannot lead out of there. Throws setup_failed. */
export async function unpackTemplate(
  environment: Environment,
  bundles: Bundles,
  template: string,
  signal: AbortSignal | undefined,
  onStep?: OnCreateStep,
): Promise<void> {
  const path = `/tmp/.template-${crypto.randomUUID()}.tar.gz`
  await environment.files.makeDirectory(DEFAULT_CWD)
  await environment.files.write(path, await readArchive(bundles, template, onStep), signal)
  void onStep?.({ type: 'progress', message: "unpacking the agent's archive" })
  const command = ['tar', '-xzof', path, '-C', DEFAULT_CWD]
  const result = await runCommand(environment, { command, timeoutMs: SETUP_TIMEOUT_MS, ...(signal && { signal }) })
  await environment.files.remove(path)
  assertDone(result, "Unpacking the agent's archive", {})
}

/** Reads an archive and counts its bytes for the client that waits. */
async function readArchive(
  bundles: Bundles,
  template: string,
  onStep: OnCreateStep | undefined,
): Promise<ReadableStream<Uint8Array>> {
  const body = bundles.read(template)
  if (!onStep) return body
  const totalBytes = await bundles.size(template)
  const message = "copying the agent's archive"
  return countingBytes(body, doneBytes => void onStep({ type: 'progress', message, doneBytes, totalBytes }))
}

function assertDone(result: CommandResult, what: string, env: Readonly<Record<string, string>>): CommandResult {
  const { stdout, stderr, exitCode } = result
  if (exitCode === 0) return result
  // The cut below may split a value, which would then not be found any more, so values are replaced first.
  const said = withoutValues(stderr.trim() || stdout.trim(), env).slice(-2000)
  throw new ApiError('setup_failed', `${what} ended with exit code ${exitCode}: ${said}`, { stdout, stderr, exitCode })
}
