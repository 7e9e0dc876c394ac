import { expect, test } from 'bun:test'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bash } from '../support/agent-server.ts'
import { startModelServer } from '../support/model-server.ts'
import { executable, plainEnvironment } from '../support/server.ts'
import { useOneOffs } from './support.ts'

const oneOffs = useOneOffs()

/** The commands of README's recipe, as they are written there. */
async function recipe(): Promise<string> {
  const readme = await Bun.file(join(import.meta.dir, '../../README.md')).text()
  const [, commands = ''] = /\n## In a CI job\n[\s\S]*?\n```sh\n([\s\S]*?)```\n/.exec(readme) ?? []
  return commands
}

test('the recipe for a CI job tests a branch, and has an agent mend it', async () => {
  const { directory } = oneOffs
  const at = (name: string) => join(directory, name)
  writeFileSync(at('sum.py'), 'print(1 - 2)\n')
  writeFileSync(at('test.sh'), 'test "$(python3 sum.py)" = 3 || { echo "not 3 but $(python3 sum.py)"; exit 4; }\n')
  mkdirSync(at('bin'))
  symlinkSync(executable, at('bin/threadbox'))

  await using model = { server: startModelServer(), [Symbol.asyncDispose]: () => model.server.stop() }
  model.server.play(
    { calls: [bash('cat work/report.txt')] },
    ({ results }) => ({
      text: `It says: ${results[0]?.trim()}. `,
      calls: [bash('cd work && sed -i s/-/+/ sum.py && sh test.sh')],
    }),
    { text: 'A minus was a plus.' },
  )
  const script = `${await recipe()}\necho "tests: $failed"\n`
  const job = Bun.spawn(['bash', '-euo', 'pipefail', '-c', script], {
    cwd: directory,
    env: {
      ...plainEnvironment,
      PATH: `${at('bin')}:${plainEnvironment.PATH}`,
      THREADBOX_DATA_DIR: join(directory, '../data'),
      ANTHROPIC_API_KEY: 'sk-test',
      ANTHROPIC_BASE_URL: model.server.access('anthropic').baseUrl,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, code] = await Promise.all([job.stdout.text(), job.stderr.text(), job.exited])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toBe('It says: not 3 but -1. \nA minus was a plus.\ntests: 4\n')
  const read = (name: string) => readFileSync(at(name), 'utf8')
  expect(read('report.txt')).toBe('not 3 but -1\n')
  expect(read('reply.txt')).toContain('A minus was a plus.')
  expect([read('sum.py'), read('fixed/sum.py')]).toEqual(['print(1 - 2)\n', 'print(1 + 2)\n'])
})
