import { type Given, UsageError } from '../command-line.ts'

/** Prints a script that makes a shell complete threadbox's commands and flags. */
export async function completions({ words: [shell = ''] }: Given): Promise<void> {
  console.log(await completionsOf(shell))
}

async function completionsOf(shell: string): Promise<string> {
  switch (shell) {
    case 'bash':
      return (await import('./bash.ts')).bashCompletions()
    case 'zsh':
      return (await import('./zsh.ts')).zshCompletions()
    case 'fish':
      return (await import('./fish.ts')).fishCompletions()
    default:
      throw new UsageError(`${shell}: there are completions for bash, zsh and fish`)
  }
}
