import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeArchive, writeSums } from '../../scripts/packages/archive.ts'
import { type Architecture, readRelease, root } from '../../scripts/packages/release.ts'
import { bash } from '../support/agent-server.ts'
import { startModelServer } from '../support/model-server.ts'
import { executable, plainEnvironment } from '../support/server.ts'
import { useOneOffs } from '../temporary/support.ts'

interface Action {
  inputs: Record<string, { default?: string; required?: boolean }>
  runs: {
    using: string
    steps: { shell: string; run: string; env: Record<string, string>; 'working-directory'?: string }[]
  }
}
interface Template {
  variables: Record<string, string>
  before_script: string[]
  script: string[]
  artifacts: { paths: string[] }
}

const packages = join(root, 'packages')
const readYaml = (name: string) => Bun.YAML.parse(readFileSync(join(packages, name), 'utf8')) as Record<string, any>
const action = () => readYaml('action/action.yml') as unknown as Action
const template = () => readYaml('gitlab-ci.yml')['.threadbox'] as Template

const oneOffs = useOneOffs()
/** The branch. */
const at = (name: string) => join(oneOffs.directory, name)
/** The runner's own places, beside it. */
const beside = (name: string) => join(oneOffs.directory, '..', name)
const read = (name: string) => readFileSync(at(name), 'utf8')

let model: ReturnType<typeof startModelServer>
let server: ReturnType<typeof Bun.serve>
beforeAll(async () => {
  model = startModelServer()
  mkdirSync(beside('release'))
  // The executable is too large to be packed for a test: this one becomes it.
  writeFileSync(beside('program'), `#!/bin/sh\nexec ${executable} "$@"\n`, { mode: 0o755 })
  const documents = {
    ...{ manualPage: '', completions: { bash: '', zsh: '', fish: '' }, notices: '', license: '', changelog: '' },
  }
  const name = process.arch === 'arm64' ? 'arm64' : 'x64'
  const architecture: Architecture = { name, debian: '', executable: beside('program') }
  await makeArchive({ release: await readRelease(), architecture, documents, output: beside('release') })
  cpSync(join(packages, 'install.sh'), join(beside('release'), 'install.sh'))
  writeSums(beside('release'))
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) => new Response(Bun.file(join(beside('release'), new URL(url).pathname))),
  })
})
afterAll(async () => {
  model.stop()
  await server.stop(true)
})

beforeEach(() => {
  for (const name of readdirSync(oneOffs.directory)) rmSync(at(name), { recursive: true })
  mkdirSync(beside('home'), { recursive: true })
  writeFileSync(at('sum.py'), 'print(1 - 2)\n')
  writeFileSync(at('check.sh'), 'test "$(python3 sum.py)" = 3 || { echo "not 3 but $(python3 sum.py)"; exit 4; }\n')
  model.play(
    { calls: [bash('cat work/report.txt')] },
    ({ results }) => ({
      text: `It says: ${results[0]?.trim()}. `,
      calls: [bash('cd work && sed -i s/-/+/ sum.py && sh check.sh')],
    }),
    { text: 'A minus was a plus.' },
  )
})

const environment = () => ({
  ...plainEnvironment,
  HOME: beside('home'),
  THREADBOX_DATA_DIR: beside('data'),
  ANTHROPIC_API_KEY: 'sk-test-key',
  ANTHROPIC_BASE_URL: model.access('anthropic').baseUrl,
})

async function run(script: string, env: Record<string, string>) {
  const command = ['bash', '--noprofile', '--norc', '-eo', 'pipefail', '-c', script]
  const child = Bun.spawn(command, { cwd: oneOffs.directory, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { code, stdout, stderr }
}

/** Runs the steps as GitHub's runner does: expressions become text, and what is written to GITHUB_PATH is in the next step's PATH. */
async function runAction(given: Record<string, string>) {
  const { inputs, runs } = action()
  const values: Record<string, string> = { 'runner.temp': beside('temp') }
  for (const [name, { default: fallback }] of Object.entries(inputs))
    values[`inputs.${name}`] = given[name] ?? fallback ?? ''
  const fill = (text: string) =>
    text.replaceAll(/\$\{\{ (\S+) \}\}/g, (_, name) => values[name] ?? `no such value: ${name}`)
  writeFileSync(beside('path'), '')
  let result = { code: 0, stdout: '', stderr: '' }
  for (const step of runs.steps) {
    const added = readFileSync(beside('path'), 'utf8').split('\n').filter(Boolean)
    const env = {
      ...environment(),
      PATH: [...added, plainEnvironment.PATH].join(':'),
      GITHUB_ACTION_PATH: join(packages, 'action'),
      GITHUB_PATH: beside('path'),
      ...Object.fromEntries(Object.entries(step.env).map(([name, value]) => [name, fill(value)])),
    }
    const { code, stdout, stderr } = await run(step.run, env)
    result = { code, stdout: result.stdout + stdout, stderr: result.stderr + stderr }
    if (code !== 0) return result
  }
  return result
}

function expectMended({ code, stdout }: { code: number; stdout: string }) {
  expect(code).toBe(4)
  expect(stdout).toEndWith('It says: not 3 but -1. \nA minus was a plus.\n')
  expect(read('report.txt')).toBe('not 3 but -1\n')
  expect([read('sum.py'), read('fixed/sum.py')]).toEqual(['print(1 - 2)\n', 'print(1 + 2)\n'])
}

const files = ['report.txt', 'reply.txt', 'fixed']

test("GitHub's action installs threadbox, has an agent mend the branch, and fails as its tests did", async () => {
  expectMended(await runAction({ 'base-url': server.url.href, test: 'sh check.sh' }))
  expect(existsSync(join(beside('temp'), 'threadbox/bin/threadbox'))).toBe(true)
  expect(readdirSync(oneOffs.directory).toSorted()).toEqual([...files, 'check.sh', 'sum.py'].toSorted())
})

test('it takes no text of its inputs for a script, and asks no agent when there is no prompt', async () => {
  const { steps } = action().runs
  expect(steps.filter(({ run: script }) => script.includes('${')).length).toBe(0)
  const { code, stderr } = await runAction({ 'base-url': server.url.href, test: 'sh check.sh', prompt: '' })
  expect([code, stderr, existsSync(at('reply.txt'))]).toEqual([4, '', false])
})

test("GitLab's template does the same", async () => {
  const { variables, before_script, script, artifacts } = template()
  const env = {
    ...environment(),
    ...variables,
    JOB_TEST: 'sh check.sh',
    THREADBOX_BASE_URL: server.url.origin,
    THREADBOX_PREFIX: join(beside('home'), '.local'),
  }
  expectMended(await run([...before_script, ...script].join('\n'), env))
  expect(artifacts.paths).toEqual(files)
})

test('both have the same job', () => {
  const job = readFileSync(join(packages, 'action/job.sh'), 'utf8')
  expect(`#!/bin/sh\n${template().script.join('\n')}`).toBe(job)
  const { JOB_TEST, JOB_PROMPT, JOB_AGENT } = template().variables
  const { inputs } = action()
  expect([inputs.test?.default, inputs.prompt?.default, inputs.agent?.default]).toEqual([
    JOB_TEST,
    JOB_PROMPT,
    JOB_AGENT,
  ])
})
