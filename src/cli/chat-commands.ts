/** A line in `threadbox chat` that the terminal itself answers. All other lines go to the agent. */
export type ChatCommand = 'help' | 'exit' | 'new' | 'sandbox'

const meanings: Record<ChatCommand, string> = {
  help: 'show this',
  new: 'begin a new thread in a new sandbox with the next message',
  sandbox: 'show the ids of sandbox and thread',
  exit: 'leave, as Ctrl-D and Ctrl-C do',
}

/** Parses such a line. Undefined for a message, also one that begins with a slash: the agent may have its own commands. */
export function findChatCommand(line: string): ChatCommand | undefined {
  const names = Object.keys(meanings) as ChatCommand[]
  return names.find(name => line.trim() === `/${name}`)
}

export const chatHelp = (): string =>
  Object.entries(meanings)
    .map(([name, meaning]) => `  ${`/${name}`.padEnd(10)}${meaning}`)
    .join('\n')
