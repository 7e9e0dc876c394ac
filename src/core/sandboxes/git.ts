import { posix } from 'node:path'
import { type CommandResult, runCommand } from '../../environment/run-command.ts'
import { ApiError, isNoSpace } from '../../errors.ts'
import type { Cause } from '../../model/observation.ts'
import type { Environment } from '../../plugin-api/index.ts'
import type { Runtime } from '../runtime.ts'
import { lendToken, TOKEN_VARIABLE } from './lend-token.ts'
import type { SandboxUse } from './use-sandbox.ts'

const TIMEOUT_MS = 600_000
/** Where a clone goes unless the request says so. */
const HOME = '/home/user/repo'

export interface CloneRequest {
  url: string
  path?: string
  token?: string
  depth?: number
  branch?: string
}

/**
 * Git takes the password from its own environment. So the token, or its placeholder, is in no argument and in no remote, and no
 * program that runs later has it.
 */
const credentials = `-c credential.helper= -c credential.helper='!f() { test "$1" = get || return 0; echo username="$THREADBOX_GIT_USER"; echo password="$${TOKEN_VARIABLE}"; }; f'`

const PREFIX = '.threadbox-clone-'

/**
 * `PATH DRAFT OPTION… -- URL`: clones beside the target and moves it there when it is whole. Drafts of clones that were
 * killed are those that no process is called with; grep reads the path from stdin, or it would find itself.
 */
const buildScript = (options: string) => `
target=$1 draft=$2
shift 2
for old in "\${draft%/*}/${PREFIX}"*; do
  [ "$old" = "$draft" ] || [ ! -d "$old" ] || printf %s "$old" | grep -qsF -f - /proc/[0-9]*/cmdline || rm -rf -- "$old"
done
taken() {
  echo "fatal: destination path '$target' already exists and is not an empty directory." >&2
  exit 128
}
isEmpty() { [ -d "$target" ] && [ -z "$(ls -A -- "$target")" ]; }
if isEmpty; then target=$(cd -P -- "$target" && pwd)
elif [ -e "$target" ] || [ -L "$target" ]; then taken
fi
trap 'rm -rf -- "$draft"' EXIT
git ${options} clone --quiet "$@" "$draft" || exit
if rmdir -- "$target" 2>/dev/null || [ ! -e "$target" ]; then mv -- "$draft" "$target"
elif isEmpty; then cp -a -- "$draft/." "$target/" # It is mounted.
else taken
fi`

type CloneRuntime = Pick<Runtime, 'egress' | 'trust' | 'environments' | 'backends'>

/** Clones a repository and adds the audit row. */
export async function cloneRepository(
  runtime: CloneRuntime & Pick<Runtime, 'observers'>,
  use: Pick<SandboxUse, 'sandbox' | 'environment'>,
  request: CloneRequest,
  cause: Cause,
  signal: AbortSignal,
): Promise<{ path: string; branch: string }> {
  const { path = HOME, url } = request
  const { id: sandboxId, teamId } = use.sandbox
  const host = URL.parse(url)?.host ?? ''
  const about = { type: 'repository.cloned', teamId, sandboxId, path, host, cause } as const
  try {
    const cloned = await clone(runtime, use, request, signal)
    runtime.observers.observe({ ...about, outcome: 'done' })
    return cloned
  } catch (error) {
    runtime.observers.observe({ ...about, outcome: 'failed' })
    throw error
  }
}

/**
 * Clones a repository into a sandbox. Where this server ends TLS for the host, the sandbox gets a placeholder in place of the
 * token. Throws git_clone_failed with git's own output, and with the proxy's reason when the proxy has refused git, which then
 * prints a bare 403.
 */
async function clone(
  runtime: CloneRuntime,
  { sandbox, environment }: Pick<SandboxUse, 'sandbox' | 'environment'>,
  request: CloneRequest,
  signal: AbortSignal,
): Promise<{ path: string; branch: string }> {
  const { url, path = HOME, token } = request
  assertUrl(url)
  await environment.files.makeDirectory(posix.dirname(path))
  const run = (env: Record<string, string>) => runGit(environment, request, { ...sandbox.envs, ...env }, signal)
  let result: CommandResult
  if (token === undefined) result = await run({})
  else {
    await using lent = await lendToken(runtime, sandbox, url, token)
    result = await run({ ...toEnv(lent?.placeholder ?? token), ...lent?.env })
    for (const word of lent?.words ?? []) result.stderr = result.stderr.replaceAll(word, '***')
    // The sandbox's programs have their own roots, and may trust a host that this server does not trust.
    if (result.exitCode !== 0 && lent?.isDistrusted()) result = await run(toEnv(token))
  }
  if (result.exitCode !== 0) {
    const output = result.stderr.trim() || `git ended with exit code ${result.exitCode}`
    const isRefused = output.includes('CONNECT tunnel failed, response 403')
    const reason = isRefused ? runtime.egress.counts(environment.id).lastRefusal : undefined
    const message = reason ? `${output}\nthreadbox: ${reason}` : output
    const code = isNoSpace(output) ? 'disk_full' : 'git_clone_failed'
    throw new ApiError(code, token ? message.replaceAll(token, '***') : message)
  }
  return { path, branch: await readBranch(environment, path, signal) }
}

const toEnv = (password: string) => ({ THREADBOX_GIT_USER: 'x-access-token', [TOKEN_VARIABLE]: password })

/** Runs git once. Its error output names the path that was asked for. */
async function runGit(
  environment: Environment,
  { url, path = HOME, token, depth, branch }: CloneRequest,
  env: Record<string, string>,
  signal: AbortSignal,
): Promise<CommandResult> {
  const options = [
    ...(depth === undefined ? [] : ['--depth', String(depth)]),
    ...(branch === undefined ? [] : ['--branch', branch]),
  ]
  const draft = posix.join(posix.dirname(path), PREFIX + crypto.randomUUID())
  const script = buildScript(token === undefined ? '' : credentials)
  const command = ['/bin/sh', '-c', script, 'git', path, draft, ...options, '--', url]
  const running = { command, cwd: '/', env: { ...env, GIT_TERMINAL_PROMPT: '0' }, timeoutMs: TIMEOUT_MS, signal }
  const result = await runCommand(environment, running).catch(async error => {
    // It was killed, and could not clean up.
    await environment.files.remove(draft).catch(() => {})
    throw error
  })
  return { ...result, stderr: result.stderr.replaceAll(draft, path) }
}

/** Of HTTP, whose words would be the proxy's: what any other is, git knows better. */
function assertUrl(url: string): void {
  if (!/^https?:/i.test(url) || (URL.canParse(url) && /^https?:\/\//i.test(url))) return
  throw new ApiError(
    'invalid_request',
    'url: must name a host and a repository, as https://example.com/group/project',
    {
      field: 'url',
    },
  )
}

async function readBranch(environment: Environment, path: string, signal: AbortSignal): Promise<string> {
  const command = ['git', '-C', path, 'symbolic-ref', '--short', '-q', 'HEAD']
  const { stdout } = await runCommand(environment, { command, cwd: '/', timeoutMs: TIMEOUT_MS, signal })
  return stdout.trim() || 'HEAD'
}
