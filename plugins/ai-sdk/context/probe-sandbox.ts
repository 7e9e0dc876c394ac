import { runCommand } from '../../../src/environment/run-command.ts'
import type { EngineContext } from '../../../src/plugin-api/index.ts'

/** What the engine learns about a sandbox before its first model call. */
export interface SandboxFacts {
  system: string
  date: string
  /** Those of the programs below that were found; also `grep -P` and `rg -P` where these take Perl's expressions. */
  programs: ReadonlySet<string>
  /** The branch of the working directory's repository. */
  gitBranch?: string
}

const candidates =
  'rg git python3 pip node npm bun deno go cargo rustc java gcc make cmake ruby php curl wget jq sqlite3 docker'
const TIMEOUT_MS = 10_000

const script = `
for p in ${candidates}; do command -v $p >/dev/null 2>&1 && echo "program $p"; done
echo a | grep -qP a 2>/dev/null && echo "program grep -P"
echo a | rg -qP a 2>/dev/null && echo "program rg -P"
echo "date $(date +%Y-%m-%d)"
( . /etc/os-release 2>/dev/null; echo "system \${PRETTY_NAME:-Linux}, $(uname -m)" )
{ git symbolic-ref --short -q HEAD || git rev-parse --short HEAD; } 2>/dev/null | sed 's/^/branch /'
true`

/** Throws when the sandbox cannot run a command. Leaves out what the sandbox does not answer. */
export async function probeSandbox({ environment, cwd, env, signal }: EngineContext): Promise<SandboxFacts> {
  const { stdout } = await runCommand(environment, { command: script, cwd, env, signal, timeoutMs: TIMEOUT_MS })
  const values = (key: string) =>
    stdout.split('\n').flatMap(line => (line.startsWith(`${key} `) ? [line.slice(key.length + 1).slice(0, 200)] : []))
  const [gitBranch] = values('branch')
  return {
    system: values('system')[0] ?? 'Linux',
    date: values('date')[0] ?? new Date().toISOString().slice(0, 10),
    programs: new Set(values('program')),
    ...(gitBranch !== undefined && { gitBranch }),
  }
}
