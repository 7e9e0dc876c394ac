import { stripVTControlCharacters } from 'node:util'
import { executable, plainEnvironment } from '../support/server.ts'
import { until } from '../support/until.ts'

/** `threadbox` in a terminal of its own. */
export interface Terminal extends AsyncDisposable {
  /** All that it showed, without colours. */
  readonly shown: string
  readonly raw: string
  /** Resolves when this is shown after what was awaited before. */
  shows(text: string): Promise<void>
  type(text: string): void
  resize(columns: number, rows: number): void
  /** Its exit code. */
  exited: Promise<number>
}

export function openTerminal(
  args: readonly string[],
  env: Record<string, string>,
  /** What is run in front of the executable. */
  command: readonly string[] = [],
): Terminal {
  let raw = ''
  let seenTo = 0
  const shown = () => stripVTControlCharacters(raw)
  const decoder = new TextDecoder()
  const child = Bun.spawn([...command, executable, ...args], {
    cwd: '/',
    env: { ...plainEnvironment, TERM: 'xterm-256color', ...env },
    terminal: {
      cols: 120,
      rows: 40,
      data: (_, bytes) => {
        raw += decoder.decode(bytes, { stream: true })
      },
    },
  })
  return {
    get shown() {
      return shown()
    },
    get raw() {
      return raw
    },
    async shows(text) {
      const where = () => shown().indexOf(text, seenTo)
      await until(() => where() >= 0, `${text} in ${JSON.stringify(shown().slice(seenTo))}`)
      seenTo = where() + text.length
    },
    resize: (columns, rows) => child.terminal?.resize(columns, rows),
    type: text => void child.terminal?.write(text),
    exited: child.exited,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
      child.terminal?.close()
    },
  }
}

export const ctrlC = '\x03'
export const ctrlD = '\x04'
