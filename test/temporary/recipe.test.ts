import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bash } from '../support/agent-server.ts'
import { processesNamed } from '../support/leftovers.ts'
import { startModelServer } from '../support/model-server.ts'
import { executable, plainEnvironment } from '../support/server.ts'
import { until } from '../support/until.ts'
import { useOneOffs } from './support.ts'

const oneOffs = useOneOffs()
const at = (name: string) => join(oneOffs.directory, name)
const read = (name: string) => readFileSync(at(name), 'utf8')

/** The commands of the recipe, as docs/ci.md has them. */
async function recipe(): Promise<string> {
  const page = await Bun.file(join(import.meta.dir, '../../docs/ci.md')).text()
  const [, commands = ''] = /\n## The recipe\n[\s\S]*?\n```sh\n([\s\S]*?)```\n/.exec(page) ?? []
  return commands
}

let model: ReturnType<typeof startModelServer>
beforeAll(() => {
  model = startModelServer()
})
afterAll(() => model.stop())

/** A branch whose tests are `script`, in a directory that has nothing else. */
beforeEach(() => {
  for (const name of readdirSync(oneOffs.directory)) rmSync(at(name), { recursive: true })
  mkdirSync(at('bin'))
  symlinkSync(executable, at('bin/threadbox'))
  writeFileSync(at('sum.py'), 'print(1 - 2)\n')
  writeFileSync(at('test.sh'), 'test "$(python3 sum.py)" = 3 || { echo "not 3 but $(python3 sum.py)"; exit 4; }\n')
})

/** The shells of CI systems: GitHub's own, GitLab's, and one that stops at nothing. */
const shells = [
  ['bash', '-euo', 'pipefail', '-c'],
  ['sh', '-e', '-c'],
  ['sh', '-c'],
]

async function startJob(shell: readonly string[], env: Record<string, string> = {}) {
  return Bun.spawn([...shell, await recipe()], {
    cwd: oneOffs.directory,
    env: {
      ...plainEnvironment,
      PATH: `${at('bin')}:${plainEnvironment.PATH}`,
      THREADBOX_DATA_DIR: join(oneOffs.directory, '../data'),
      ANTHROPIC_API_KEY: 'sk-test-key',
      ANTHROPIC_BASE_URL: model.access('anthropic').baseUrl,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function runJob(shell: readonly string[], env?: Record<string, string>) {
  const job = await startJob(shell, env)
  const [stdout, stderr, code] = await Promise.all([job.stdout.text(), job.stderr.text(), job.exited])
  return { code, stdout, stderr }
}

describe.each(shells.map(shell => ({ shell, name: shell.join(' ') })))(
  'the recipe for a CI job in $name',
  ({ shell }) => {
    test('has an agent mend a branch, and fails as its tests did', async () => {
      model.play(
        { calls: [bash('cat work/report.txt')] },
        ({ results }) => ({
          text: `It says: ${results[0]?.trim()}. `,
          calls: [bash('cd work && sed -i s/-/+/ sum.py && sh test.sh')],
        }),
        { text: 'A minus was a plus.' },
      )
      expect(await runJob(shell)).toEqual({
        code: 4,
        stdout: 'It says: not 3 but -1. \nA minus was a plus.\n',
        stderr: expect.stringMatching(
          /^● Bash cat work\/report.txt\nnot 3 but -1\n● Bash cd work [^\n]+\n\(no output\)\n$/,
        ),
      })
      expect(read('report.txt')).toBe('not 3 but -1\n')
      expect(read('reply.txt')).toContain('A minus was a plus.')
      expect([read('sum.py'), read('fixed/sum.py')]).toEqual(['print(1 - 2)\n', 'print(1 + 2)\n'])
    })
  },
)

describe('the recipe for a CI job', () => {
  const [shell = []] = shells

  test('passes when the tests pass, without a model', async () => {
    writeFileSync(at('sum.py'), 'print(1 + 2)\n')
    expect(await runJob(shell, { ANTHROPIC_API_KEY: '' })).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(existsSync(at('reply.txt'))).toBe(false)
  })

  test('fails as the tests did when the agent fails', async () => {
    model.play({ status: 400, message: 'no such model here' })
    const { code, stderr } = await runJob(shell)
    expect(code).toBe(4)
    expect(stderr).toContain('The agent failed, with exit code 1.')
  })

  test('fails as the tests did when there is no agent', async () => {
    const { code, stderr } = await runJob(shell, { ANTHROPIC_API_KEY: '' })
    expect(code).toBe(4)
    expect(stderr).toContain('The agent failed, with exit code 2.')
  })

  test('fails when nothing can be isolated, and asks no agent', async () => {
    const { code, stderr } = await runJob(shell, { THREADBOX_NSJAIL_PATH: '/nowhere/nsjail' })
    expect(code).toBe(125)
    expect(stderr).toContain('/nowhere/nsjail')
    expect(existsSync(at('reply.txt'))).toBe(false)
  })

  test.each([
    ['SIGKILL', 137],
    ['SIGTERM', 143],
  ] as const)('fails when it is ended by %s, and asks no agent', async (signal, wanted) => {
    writeFileSync(at('test.sh'), 'sleep 7457\n')
    const job = await startJob(shell)
    await until(() => processesNamed('7457').length > 0)
    const [command = 0] = readFileSync(`/proc/${job.pid}/task/${job.pid}/children`, 'utf8').split(' ').map(Number)
    process.kill(command, signal)
    expect(await job.exited).toBe(wanted)
    expect(existsSync(at('reply.txt'))).toBe(false)
    await until(async () => (await oneOffs.left()).length === 0)
  })
})
