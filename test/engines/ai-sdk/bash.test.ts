import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { openTestSandbox, type TestSandbox } from '../../support/sandbox.ts'
import { until } from '../../support/until.ts'
import { errorOf, toolsIn, type UseTool } from './tools.ts'

let sandbox: TestSandbox
let use: UseTool
beforeAll(async () => {
  sandbox = await openTestSandbox()
  use = await toolsIn(sandbox)
}, 60_000)
afterAll(() => sandbox.close(), 60_000)

describe('Bash', () => {
  const rows: [string, object, string][] = [
    ['gives what a command prints', { command: 'echo out; echo bad >&2' }, 'out\nbad\n'],
    ['says that nothing was printed', { command: 'true' }, '(no output)'],
    ['starts in the working directory', { command: 'pwd' }, '/home/user\n'],
    ['takes several lines and quotes', { command: `cat <<'EOF'\n"a" $b \\n\nEOF` }, '"a" $b \\n\n'],
    ['takes a timeout as text', { command: 'echo a', timeout: '5000' }, 'a\n'],
    ['gives what is no UTF-8 replaced', { command: "printf 'a\\377b'" }, 'a�b'],
  ]
  test.each(rows)('%s', async (_, input, output) => {
    expect(await use('Bash', input)).toBe(output)
  })

  const failures: [string, unknown, string][] = [
    ['tells an exit code with what was printed', { command: 'echo why; exit 3' }, 'Exit code 3\nwhy'],
    [
      'kills what takes too long, and keeps what it printed',
      { command: 'echo begun; sleep 7401', timeout: 300 },
      'The command did not end within 300 ms and was killed.\nbegun',
    ],
    [
      'refuses an empty command',
      { command: '' },
      'InputValidationError: Bash was called with a wrong input:\n- command:',
    ],
    ['refuses an input that is none', 'ls', 'InputValidationError: Bash was called with a wrong input:\n- input:'],
    ['refuses a timeout over ten minutes', { command: 'a', timeout: 600_001 }, 'InputValidationError'],
  ]
  test.each(failures)('%s', async (_, input, problem) => {
    expect(await errorOf(use('Bash', input))).toStartWith(problem)
  })

  test('leaves nothing of a killed command alive', async () => {
    expect(await sandbox.sleepers('7401')).toBe(0)
  })

  test('keeps the beginning and the end of a long output, and says what is missing', async () => {
    const output = String(await use('Bash', { command: 'echo first; seq 200000; echo last' }))
    expect(output.length).toBeLessThan(31_000)
    expect(output).toStartWith('first\n1\n')
    expect(output).toEndWith('200000\nlast\n')
    expect(output).toMatch(/\[12\d{5} characters left out\]/)
  })

  test('shows a running output a few times, and not all of it', async () => {
    const pieces: string[] = []
    const progress = ({ text }: Readonly<Record<string, unknown>>) => void pieces.push(String(text))
    await use('Bash', { command: 'echo first; sleep 0.3; yes "a line of output" | head -c 60000000' }, { progress })
    expect(pieces[0]).toStartWith('first\n')
    expect(pieces.join('').length).toBeLessThan(80_000)
    expect(pieces.length).toBeLessThan(60)
  })

  test('starts in the background what outlives the call, and a cancel takes it along', async () => {
    const abort = new AbortController()
    const input = { command: 'echo "it\'s up"; sleep 7402', run_in_background: true }
    const output = String(await use('Bash', input, { signal: abort.signal }))
    const [, log] = /Output is being written to: (\S+)/.exec(output) ?? []
    const [, pid] = /kill (\d+)/.exec(output) ?? []
    await until(async () => (await sandbox.shell(`cat ${log}`)) === "it's up\n")
    expect(await sandbox.shell(`kill -0 ${pid} && echo alive`)).toBe('alive\n')
    await until(async () => (await sandbox.sleepers('7402')) === 1)
    abort.abort()
    await until(async () => (await sandbox.sleepers('7402')) === 0)
  })
})
