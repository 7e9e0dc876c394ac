import { type JsonObject, objectOf, objectsOf } from '../../../src/read/json.ts'
import { toToolOutput } from '../tool-output.ts'

/** Claude's names for the tools of other programs: clients choose how to show a tool by these. */
const names: Readonly<Record<string, string>> = {
  bash: 'Bash',
  shell: 'Bash',
  run_shell_command: 'Bash',
  exec_command: 'Bash',
  read: 'Read',
  read_file: 'Read',
  write: 'Write',
  write_file: 'Write',
  edit: 'Edit',
  replace: 'Edit',
  apply_patch: 'Edit',
  glob: 'Glob',
  grep: 'Grep',
  search_file_content: 'Grep',
  list: 'LS',
  ls: 'LS',
  list_directory: 'LS',
  webfetch: 'WebFetch',
  web_fetch: 'WebFetch',
  websearch: 'WebSearch',
  todowrite: 'TodoWrite',
  task: 'Task',
}

const kinds: Readonly<Record<string, string>> = {
  execute: 'Bash',
  read: 'Read',
  edit: 'Edit',
  delete: 'Delete',
  move: 'Move',
  search: 'Grep',
  fetch: 'WebFetch',
}

/** The name of a tool call: the program's own, else one by the call's kind. `servers`: the names of MCP servers. */
export function readToolName(
  { name, title, kind, _meta, content }: JsonObject,
  servers: readonly string[] = [],
): string {
  const meta = objectOf(_meta)
  const declared = objectOf(meta?.claudeCode)?.toolName ?? name ?? meta?.toolName ?? meta?.tool_name
  const serverTool = [declared, title].map(each => findServerTool(String(each), servers)).find(Boolean)
  if (serverTool !== undefined) return serverTool
  if (typeof declared === 'string' && declared) return names[declared.toLowerCase()] ?? clean(declared)
  const titled = typeof title === 'string' ? (names[title.toLowerCase()] ?? mcpName(title)) : undefined
  if (titled) return titled
  if (kind === 'edit' && objectsOf(content).some(({ type, oldText }) => type === 'diff' && oldText == null))
    return 'Write'
  return kinds[String(kind)] ?? (typeof title === 'string' && title ? clean(title) : 'Tool')
}

const mcpName = (title: string): string | undefined => (/^mcp__\w+/.test(title) ? clean(title) : undefined)

/** Each program joins a server's name and its tool's in its own way: `S_T`, `S.T`, `mcp.S.T`, `S__T`, `S/T`. */
function findServerTool(name: string, servers: readonly string[]): string | undefined {
  const bare = name.replace(/^mcp[._]+/, '')
  for (const server of servers) {
    for (const text of [bare, name]) {
      if (alike(text.slice(0, server.length)) !== alike(server)) continue
      const tool = /^[._/: ]+([\w-]+)/.exec(text.slice(server.length))?.[1]
      if (tool !== undefined) return clean(`mcp__${server}__${tool}`)
    }
  }
  return undefined
}

/** Some programs write `_` for `-`. */
const alike = (name: string): string => name.replaceAll('-', '_')

const clean = (name: string): string => name.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 64)

/** A call's input, with the fields of Claude's tool of that name as far as the update has them. */
export function readToolInput(call: JsonObject): JsonObject {
  const raw = objectOf(call.rawInput) ?? {}
  // Codex tells which server and tool a call is of.
  const given = objectOf(raw.arguments)
  if (given && typeof raw.server === 'string' && typeof raw.tool === 'string') return given
  const name = readToolName(call)
  const diff = objectsOf(call.content).find(({ type }) => type === 'diff')
  const path = first(
    raw.file_path,
    raw.filePath,
    raw.path,
    raw.absolute_path,
    diff?.path,
    objectsOf(call.locations)[0]?.path,
  )
  if (name === 'Bash') return { ...raw, ...present({ command: toCommandLine(raw.command ?? raw.cmd ?? call.title) }) }
  if (name === 'Read') return { ...raw, ...present({ file_path: path }) }
  if (name === 'Write') return { ...raw, ...present({ file_path: path, content: first(raw.content, diff?.newText) }) }
  if (name === 'Edit') {
    const old_string = first(raw.old_string, raw.oldString, diff?.oldText)
    const new_string = first(raw.new_string, raw.newString, diff?.newText)
    return { ...raw, ...present({ file_path: path, old_string, new_string }) }
  }
  return raw
}

/** Codex gives a command as the list `bash`, `-lc`, LINE. */
function toCommandLine(command: unknown): string | undefined {
  if (!Array.isArray(command)) return typeof command === 'string' ? command : undefined
  const isShell =
    command.length === 3 && /(^|\/)(ba|z)?sh$/.test(String(command[0])) && /^-\w*c$/.test(String(command[1]))
  return isShell ? String(command[2]) : command.join(' ')
}

/** A call's output: the raw output where that is text, else the content that the program shows for it. */
export function readToolOutput({ rawOutput, content, printed }: JsonObject): unknown {
  const raw = objectOf(rawOutput)
  const text = first(
    rawOutput,
    raw?.output,
    raw?.stdout,
    raw?.formatted_output,
    raw?.aggregated_output,
    raw?.aggregatedOutput,
  )
  if (text !== undefined) return text
  // Codex puts an MCP server's answer into `result`.
  const answered = toToolOutput(objectOf(raw?.result)?.content) || first(objectOf(raw?.error)?.message, raw?.error)
  if (answered) return answered
  const shown = toToolOutput(
    objectsOf(content).flatMap(({ type, content: block }) => (type === 'content' ? [block] : [])),
  )
  if (shown !== '') return shown
  return first(printed) || (raw ?? '')
}

const first = (...values: unknown[]): string | undefined =>
  values.find(value => typeof value === 'string') as string | undefined

const present = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
