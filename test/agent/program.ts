import { bash } from '../support/agent-server.ts'
import type { ModelServer } from '../support/model-server.ts'

export const file_path = '/home/user/primes.py'

const program = (limit: number) => `print(sum(n for n in range(2, ${limit}) if all(n % d for d in range(2, n))))\n`

/** What the task leaves. */
export const finalProgram = program(100)

/** What the reply says: what the two runs printed is in it. */
export const finalText = 'I write it. It prints 77. Now it prints 1060.'

/** A task only an agent can do: a program is written, run, read, edited and run again, each step by what the last gave. */
export function playProgram(model: ModelServer): void {
  model.play(
    { text: 'I write it. ', calls: [{ name: 'Write', input: { file_path, content: program(20) } }] },
    { calls: [bash('python3 primes.py')] },
    ({ results }) => ({ text: `It prints ${results[0]?.trim()}. `, calls: [{ name: 'Read', input: { file_path } }] }),
    ({ results }) => {
      const [old_string = 'never read'] = /range\(2, \d+\)/.exec(results[0] ?? '') ?? []
      return { calls: [{ name: 'Edit', input: { file_path, old_string, new_string: 'range(2, 100)' } }] }
    },
    { calls: [bash('python3 primes.py')] },
    ({ results }) => ({ text: `Now it prints ${results[0]?.trim()}.` }),
  )
}
