// Uses each method of the code interpreter's SDK for JavaScript, and prints what came of it as lines of JSON.
import { type Context, Sandbox } from '@e2b/code-interpreter'
import { version } from '@e2b/code-interpreter/package.json'

const so = (isSo: unknown): void => {
  if (!isSo) throw new Error('not so')
}

const chart = "import matplotlib.pyplot as plt\nplt.bar(['x', 'y'], [1, 2])\nplt.show()"
const sandbox = await Sandbox.create()

async function inContext(): Promise<Context> {
  const context = await sandbox.createCodeContext({ cwd: '/tmp' })
  so((await sandbox.runCode('import os; os.getcwd()', { context })).text === '/tmp')
  return context
}

const lines: Record<string, () => unknown> = {
  result: async () => so((await sandbox.runCode('x = 41\nx + 1')).text === '42'),
  state: async () => so((await sandbox.runCode('x')).text === '41'),
  async output() {
    const seen: string[] = []
    const onMessage = ({ line, error }: { line: string; error: boolean }) => void seen.push(`${error} ${line}`)
    const code = 'print(1)\nimport sys; print(2, file=sys.stderr)'
    await sandbox.runCode(code, { onStdout: onMessage, onStderr: onMessage })
    so(seen.sort().join() === 'false 1\n,true 2\n')
  },
  error: async () => so((await sandbox.runCode('1 / 0')).error?.name === 'ZeroDivisionError'),
  variables: async () => so((await sandbox.runCode("import os; os.environ['A']", { envs: { A: 'b' } })).text === 'b'),
  async data() {
    const { results } = await sandbox.runCode("import pandas; pandas.DataFrame({'a': [1]})")
    so(JSON.stringify(results[0]?.data) === '{"a":[1]}')
  },
  image: async () => so((await sandbox.runCode(chart)).results[0]?.png),
  chart: async () => so((await sandbox.runCode(chart)).results[0]?.chart?.type === 'bar'),
  'create context': inContext,
  'list contexts': async () => so((await sandbox.listCodeContexts()).length > 0),
  async 'restart context'() {
    const context = await inContext()
    await sandbox.restartCodeContext(context)
    so((await sandbox.runCode('os', { context })).error?.name === 'NameError')
  },
  async 'remove context'() {
    const { length } = await sandbox.listCodeContexts()
    await sandbox.removeCodeContext(await inContext())
    so((await sandbox.listCodeContexts()).length === length)
  },
}

try {
  for (const [name, use] of Object.entries(lines)) {
    const said = await Promise.resolve(use()).then(
      () => 'works',
      (error: Error) => error.message.split('\n', 1)[0]?.replaceAll('|', '/').slice(0, 120),
    )
    console.log(JSON.stringify([version, name, said]))
  }
} finally {
  await sandbox.kill()
}
