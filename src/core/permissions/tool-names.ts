/** Tools that rules for `Read` cover, and those for `Edit`. */
export const groups: Readonly<Record<string, readonly string[]>> = {
  Read: ['Read', 'Glob', 'Grep', 'LS'],
  Edit: ['Edit', 'Write', 'MultiEdit', 'NotebookEdit'],
}

/** Tools that change nothing, and tools whose own calls are asked about. */
const readOnly: ReadonlySet<string> = new Set(
  `Read Glob Grep LS TodoWrite TodoRead WebFetch WebSearch Task Agent TaskOutput TaskCreate TaskGet TaskList TaskUpdate
  BashOutput NotebookRead ToolSearch ListMcpResources ReadMcpResource ListMcpResourcesTool ReadMcpResourceTool
  EnterPlanMode ExitPlanMode AskUserQuestion`.split(/\s+/),
)

export const isReadOnlyTool = (name: string): boolean => readOnly.has(name)

export const isEditTool = (name: string): boolean => groups.Edit?.includes(name) === true

/** Names that an engine here gives to a tool of its own, beside those of MCP servers. */
const own: ReadonlySet<string> = new Set([
  ...readOnly,
  ...Object.values(groups).flat(),
  ...'Bash RunCode KillShell KillBash Delete Move Tool Skill SlashCommand Monitor CronCreate CronDelete CronList ScheduleWakeup'.split(
    ' ',
  ),
])

/** Whether a name is one of the server's own tools, or of an MCP server. */
export const isOwnTool = (name: string): boolean => own.has(name) || name.startsWith('mcp__')
