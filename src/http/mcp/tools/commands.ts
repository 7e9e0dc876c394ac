import { type Static, Type } from '@sinclair/typebox'
import { ApiError } from '../../../errors.ts'
import { AbsolutePath, CommandLine, Variables } from '../../schema.ts'
import { assertDone, errorOf } from '../ask.ts'
import { createBoundedText } from '../bounded-text.ts'
import { eventsOf } from '../events.ts'
import { type Call, type Outcome, type Tool, tool } from '../tool.ts'
import { DEFAULT_CHARACTERS, MaxCharacters, SandboxId } from './fields.ts'

const Exec = Type.Object({
  sandboxId: SandboxId,
  command: { ...CommandLine, description: 'For bash.' },
  cwd: Type.Optional({ ...AbsolutePath, description: 'Directory to run it in.' }),
  envs: Type.Optional({ ...Variables, description: 'Environment variables.' }),
  timeoutMs: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 600_000,
      description: 'Default 60000. Then it is killed, with what it started.',
    }),
  ),
  maxCharacters: Type.Optional({ ...MaxCharacters, description: 'Of stdout and of stderr each; default 30000.' }),
})

export const commandTools: readonly Tool[] = [
  tool({
    name: 'exec',
    title: 'Run a command',
    description:
      'Runs a shell command in a sandbox and waits for its end. Gives stdout, stderr and the exit code; of long output the beginning and the end. For servers use start_process.',
    input: Exec,
    isDestructive: true,
    isLong: true,
    run: runCommand,
  }),
]

/** Runs a command. A non-zero exit code is an ordinary result; after a time-out, the output up to then is returned. */
async function runCommand(input: Static<typeof Exec>, { ask, signal, tell }: Call): Promise<Outcome> {
  const { sandboxId, maxCharacters = DEFAULT_CHARACTERS, ...body } = input
  const path = `/v1/sandboxes/${sandboxId}/exec`
  const response = await assertDone(await ask({ method: 'POST', path, body, events: true, signal }))
  const stdout = createBoundedText(maxCharacters)
  const stderr = createBoundedText(maxCharacters)
  let failed: ApiError | undefined
  let exitCode: number | undefined
  for await (const { type, data, ...event } of eventsOf(response)) {
    if (type === 'error') failed = errorOf(event)
    if (type === 'exit') exitCode = Number(event.exitCode)
    if (type !== 'stdout' && type !== 'stderr') continue
    const text = String(data)
    if (type === 'stdout') stdout.add(text)
    else stderr.add(text)
    tell(text.trimEnd().split('\n').at(-1) ?? '')
  }
  signal.throwIfAborted()
  if (exitCode === undefined) failed ??= new ApiError('sandbox_unavailable', 'The command did not come to its end.')
  const printed = { stdout: stdout.text(), stderr: stderr.text(), truncated: stdout.isCut || stderr.isCut }
  const sections = [printed.stdout, printed.stderr && `stderr:\n${printed.stderr}`].filter(text => text !== '')
  if (failed) {
    const { code, message } = failed
    const text = [...sections, `${code}: ${message}`].join('\n')
    return { text, structured: { ...printed, error: { code, message } }, isError: true }
  }
  return { text: [...sections, `exit code ${exitCode}`].join('\n'), structured: { ...printed, exitCode } }
}
