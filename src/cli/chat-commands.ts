/** What a line typed in `threadbox chat` asks of the terminal itself; all other lines are for the agent. */
export type ChatCommand = 'help' | 'exit' | 'new' | 'sandbox'

const meanings: Record<ChatCommand, string> = {
  help: 'show this',
  new: 'begin a new thread in a new sandbox with the next message',
  sandbox: 'show the ids of sandbox and thread',
  exit: 'leave, as Ctrl-D and Ctrl-C do',
}

/** Undefined for a message, also for one that begins with a slash: the agent may have commands of its own. */
export function findChatCommand(line: string): ChatCommand | undefined {
  const names = Object.keys(meanings) as ChatCommand[]
  return names.find(name => line.trim() === `/${name}`)
}

export const chatHelp = (): string =>
  Object.entries(meanings)
    .map(([name, meaning]) => `  ${`/${name}`.padEnd(10)}${meaning}`)
    .join('\n')
