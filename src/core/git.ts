import { posix } from 'node:path'
import { ApiError, isNoSpace } from '../errors.ts'
import { runShell } from '../guest/shell.ts'
import type { Environment } from '../plugin.ts'

const TIMEOUT_MS = 600_000

export interface CloneRequest {
  url: string
  path?: string
  token?: string
  depth?: number
  branch?: string
}

/**
 * The token reaches git by its own environment alone, as an answer to its question for a password: it is in no argument,
 * in no remote, and nothing that runs later has it.
 */
const script = `
git -c credential.helper= -c credential.helper='!f() { test "$1" = get || return 0; echo username="$THREADBOX_GIT_USER"; echo password="$THREADBOX_GIT_TOKEN"; }; f' \
  clone --quiet "$@"`

/**
 * Clones a repository into the environment. Throws git_clone_failed with git's own words, and with what `refusal` gives
 * when the proxy has refused git: that is told as a bare 403.
 */
export async function cloneRepository(
  environment: Environment,
  request: CloneRequest,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  refusal: () => string | undefined,
): Promise<{ path: string; branch: string }> {
  const { url, path = '/home/user/repo', token, depth, branch } = request
  const options = [
    ...(depth === undefined ? [] : ['--depth', String(depth)]),
    ...(branch === undefined ? [] : ['--branch', branch]),
  ]
  await environment.files.makeDirectory(posix.dirname(path))
  const command = [
    '/bin/sh',
    '-c',
    token === undefined ? 'git clone --quiet "$@"' : script,
    'git',
    ...options,
    '--',
    url,
    path,
  ]
  const result = await runShell(environment, {
    command,
    cwd: '/',
    env: {
      ...env,
      GIT_TERMINAL_PROMPT: '0',
      ...(token !== undefined && { THREADBOX_GIT_USER: 'x-access-token', THREADBOX_GIT_TOKEN: token }),
    },
    timeoutMs: TIMEOUT_MS,
    signal,
  })
  if (result.exitCode !== 0) {
    const words = result.stderr.trim() || `git ended with exit code ${result.exitCode}`
    const reason = words.includes('CONNECT tunnel failed, response 403') ? refusal() : undefined
    const told = reason ? `${words}\nthreadbox: ${reason}` : words
    const code = isNoSpace(words) ? 'disk_full' : 'git_clone_failed'
    throw new ApiError(code, token ? told.replaceAll(token, '***') : told)
  }
  return { path, branch: await branchOf(environment, path, signal) }
}

async function branchOf(environment: Environment, path: string, signal: AbortSignal): Promise<string> {
  const command = ['git', '-C', path, 'symbolic-ref', '--short', '-q', 'HEAD']
  const { stdout } = await runShell(environment, { command, cwd: '/', timeoutMs: TIMEOUT_MS, signal })
  return stdout.trim() || 'HEAD'
}
