import { z } from 'zod'
import { runCommand } from '../../../src/environment/run-command.ts'
import { ApiError } from '../../../src/errors.ts'
import { startInBackground } from './background.ts'
import { createOutputPreview } from './output-preview.ts'
import { defineTool } from './tool.ts'
import { createTranscript } from './transcript.ts'

const DEFAULT_TIMEOUT_MS = 120_000
const MAX_TIMEOUT_MS = 600_000

export const bash = defineTool({
  name: 'Bash',
  description: `Runs a shell command in the sandbox and gives what it prints (stdout and stderr as they came, cut in the middle beyond 30,000 characters).
Each call is a shell of its own that starts in the working directory: a "cd" or a variable does not last; use absolute paths, or "cd DIR && …" within one call.
Nothing can be typed into a command: use flags that make it ask nothing (-y, --yes, --no-pager).
A command is killed after "timeout" milliseconds (120000 unless given, at most 600000). Start servers, watchers and what takes longer with "run_in_background".
For files use the other tools: Read, Write, Edit, Glob, Grep, LS.`,
  input: z.object({
    command: z.string().min(1).describe('The command'),
    timeout: z.coerce.number().min(1).max(MAX_TIMEOUT_MS).optional().describe('In milliseconds, at most 600000'),
    description: z.string().optional().describe('What it does, in five to ten words'),
    run_in_background: z
      .boolean()
      .optional()
      .describe('Returns at once. The command lives on and prints to a file that you are told of'),
  }),
  async run({ command, timeout = DEFAULT_TIMEOUT_MS, run_in_background }, context) {
    if (run_in_background) return startInBackground(command, context)
    const { environment, cwd, env, signal, progress } = context
    const transcript = createTranscript()
    const preview = createOutputPreview(text => progress({ text }))
    const onOutput = (stream: 'stdout' | 'stderr', bytes: Uint8Array) => preview.add(transcript.add(stream, bytes))
    try {
      const options = { command, cwd, env, signal, timeoutMs: timeout, maxOutputBytes: 0, onOutput }
      const { exitCode } = await runCommand(environment, options)
      if (exitCode !== 0) throw new Error(`Exit code ${exitCode}\n${transcript.text()}`.trimEnd())
      return transcript.text() || '(no output)'
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'command_timeout')) throw error
      throw new Error(`The command did not end within ${timeout} ms and was killed.\n${transcript.text()}`.trimEnd())
    } finally {
      preview.stop()
    }
  },
})
