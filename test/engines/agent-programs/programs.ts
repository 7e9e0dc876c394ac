import { acp, claudeCode } from '../../../plugins/agent-programs/index.ts'
import type { Plugin, TurnOptions } from '../../../src/plugin-api/index.ts'
import type { ModelCall, ModelRequest, ModelServer, ModelTurn, Wire } from '../../support/model-server.ts'

/** The calls of a model that make a program act. */
export interface Tools {
  shell(command: string): ModelCall
  write(path: string, content: string): ModelCall
  read(path: string): ModelCall
  edit(path: string, from: string, to: string): ModelCall
}

/** A real program, and how its engine is told of it. */
export interface ProgramUnderTest extends Tools {
  plugin: Plugin
  options: TurnOptions
  wire: Wire
  /** Its only model. */
  model?: { provider: string; id: string }
  /** Calls the agent's own tool. Default: by the name that threads show. */
  own?(name: string, input: object): ModelCall
  /** Calls a tool of the client. Default: by the name that Claude Code gives it. */
  client?(name: string, input: object): ModelCall
  /** It asks before each command; when not for `shell`, then for this call. */
  asks?: true
  askingShell?(command: string): ModelCall
  /** A denial ends its answer, and with that the other calls of the same step. */
  endsByDenial?: true
  /** What its command line has, to find its process by. */
  process: string
  /** When its model breaks off, it asks again for longer than a test waits, or ends as if all were well. */
  hidesBreaks?: true
  /** Tells of a command, and not what it printed. */
  hidesOutput?: true
  /** Tells a failure of its model as if the model had said it, and then as an error. */
  saysItsFailures?: true
}

const claudeTools: Tools = {
  shell: command => ({ name: 'Bash', input: { command } }),
  write: (file_path, content) => ({ name: 'Write', input: { file_path, content } }),
  read: file_path => ({ name: 'Read', input: { file_path } }),
  edit: (file_path, old_string, new_string) => ({ name: 'Edit', input: { file_path, old_string, new_string } }),
}

const execute = (cmd: string): ModelCall => ({ name: 'exec_command', input: { cmd } })

/** It has no tools for files beside its shell. */
const codexTools: Tools = {
  shell: execute,
  write: (path, content) => execute(`cat > ${path} <<'END'\n${content}END`),
  read: path => execute(`cat ${path}`),
  edit: (path, from, to) => execute(`sed -i 's/${from}/${to}/' ${path}`),
}

export const programs: Readonly<Record<string, ProgramUnderTest>> = {
  'claude-code': {
    plugin: claudeCode,
    options: {},
    wire: 'anthropic',
    ...claudeTools,
    process: 'claude -p',
    asks: true,
  },
  opencode: {
    plugin: acp,
    options: { acp: { preset: 'opencode' } },
    wire: 'openai-chat',
    shell: command => ({ name: 'bash', input: { command, description: 'Runs it' } }),
    write: (filePath, content) => ({ name: 'write', input: { filePath, content } }),
    read: filePath => ({ name: 'read', input: { filePath } }),
    edit: (filePath, oldString, newString) => ({ name: 'edit', input: { filePath, oldString, newString } }),
    own: (name, input) => ({ name: `user-tools_${name}`, input }),
    process: 'opencode acp',
    hidesBreaks: true,
  },
  codex: {
    plugin: acp,
    options: { acp: { preset: 'codex' } },
    wire: 'openai-responses',
    ...codexTools,
    own: (name, input) => ({ name, namespace: 'mcp__user_tools', input }),
    process: 'codex-acp',
    asks: true,
    endsByDenial: true,
    // Its own sandbox does not work inside of ours: a command needs leave to run without it.
    askingShell: cmd => ({
      name: 'exec_command',
      input: { cmd, sandbox_permissions: 'require_escalated', justification: 'To try it.' },
    }),
    client: (name, input) => ({ name, namespace: 'mcp__client_tools', input }),
  },
  gemini: {
    plugin: acp,
    options: { acp: { preset: 'gemini' } },
    wire: 'openai-chat',
    model: { provider: 'gemini', id: 'gemini-2.5-flash' },
    shell: command => ({ name: 'run_shell_command', input: { command } }),
    write: (file_path, content) => ({ name: 'write_file', input: { file_path, content } }),
    read: file_path => ({ name: 'read_file', input: { file_path } }),
    edit: (file_path, old_string, new_string) => ({
      name: 'replace',
      input: { file_path, old_string, new_string, instruction: 'Change it.' },
    }),
    process: 'gemini --acp',
    hidesBreaks: true,
    hidesOutput: true,
  },
  'claude-agent-acp': {
    plugin: acp,
    options: { acp: { preset: 'claude-agent-acp' } },
    wire: 'anthropic',
    saysItsFailures: true,
    ...claudeTools,
    process: 'claude-agent-acp',
  },
}

type Script = ModelTurn | ((request: ModelRequest) => ModelTurn)

/** Plays turns to the calls that a program makes for its answer. Those for a title or the like, without tools, get a word. */
export function playTo(model: ModelServer, ...turns: Script[]): void {
  const left = [...turns]
  const next = (request: ModelRequest): ModelTurn => {
    if (request.tools.length === 0) return { text: 'A title' }
    const turn = left.shift() ?? { text: 'Nothing more.' }
    return typeof turn === 'function' ? turn(request) : turn
  }
  model.play(...Array.from({ length: 500 }, () => next))
}
