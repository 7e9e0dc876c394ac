import type { Environment } from '../plugin-api/index.ts'
import type { Given } from './command-line.ts'
import { printer } from './print.ts'
import { readOneOff } from './temporary/flags.ts'
import { withSandbox } from './temporary/session.ts'

/** Runs one command in a temporary sandbox. Returns its exit code. */
export async function exec(given: Given): Promise<number> {
  const oneOff = readOneOff(given, process.env)
  const { words, json } = oneOff
  return await withSandbox(oneOff, async ({ environment, sandbox: { cwd, envs }, signal }) => {
    const child = await environment.spawn({
      // A single word is a line for the shell, as with ssh.
      command: words.length === 1 ? (words[0] ?? '') : words,
      ...{ cwd, env: envs, signal },
      ...(!process.stdin.isTTY && { stdin: 'pipe' }),
    })
    if (child.stdin) void feed(child.stdin)
    const { stdout, stderr } = printer()
    const show = async (type: 'stdout' | 'stderr') => {
      const decoder = new TextDecoder()
      for await (const chunk of child[type]) {
        if (!json) await (type === 'stdout' ? stdout : stderr)(chunk)
        else await stdout(`${JSON.stringify({ type, data: decoder.decode(chunk, { stream: true }) })}\n`)
      }
    }
    const [{ exitCode }] = await Promise.all([child.exited, show('stdout'), show('stderr')])
    signal.throwIfAborted()
    if (json) await stdout(`${JSON.stringify({ type: 'exit', exitCode })}\n`)
    return exitCode
  })
}

/** Forwards our stdin to the command, which may end before it has read everything. */
async function feed(stdin: NonNullable<Awaited<ReturnType<Environment['spawn']>>['stdin']>): Promise<void> {
  await Bun.stdin
    .stream()
    .pipeTo(stdin)
    .catch(() => {})
}
