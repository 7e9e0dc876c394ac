import { afterAll, describe, expect, test } from 'bun:test'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { useApp } from '../../support/app.ts'

const app = useApp()
const root = join(import.meta.dir, '../../..')
const directory = mkdtempSync(join(tmpdir(), 'threadbox-openapi-'))
afterAll(() => rmSync(directory, { recursive: true }))

/** Generators have TypeScript 5 in them, so they are no packages of this repository, which has a later one. */
const generators = {
  'openapi-typescript': '7.13.0',
  'openapi-fetch': '0.17.0',
  '@hey-api/openapi-ts': '0.99.0',
  typescript: '5.9.3',
}
const PYTHON_CLIENT = 'openapi-python-client==0.29.1'

const wanted = {
  stdout: 'set\n',
  exitCode: 3,
  written: [4],
  files: ['a'],
  done: true,
  threads: ['first'],
  error: 'sandbox_not_found',
  deleted: 204,
}

/** The stdout of a command that must succeed. */
async function run(command: string[], cwd: string, env: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn(command, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (code !== 0) throw new Error(`${command.join(' ')}\n${stdout}${stderr}`)
  return stdout
}

/** A project with the description of the API, and a program that uses what is made of it. */
async function project(name: string, program: string): Promise<string> {
  const project = join(directory, name)
  const { body } = await app.ask('GET', '/v1/openapi.json')
  await Bun.write(join(project, 'openapi.json'), JSON.stringify(body))
  copyFileSync(join(import.meta.dir, 'clients', program), join(project, program))
  return project
}

/** As `project`, with the generators in its node_modules. */
async function nodeProject(name: string, program: string): Promise<string> {
  const cwd = await project(name, program)
  const about = { name, private: true, type: 'module', dependencies: generators }
  writeFileSync(join(cwd, 'package.json'), JSON.stringify(about))
  await run(['bun', 'install', '--no-save', '--no-progress', '--silent'], cwd)
  return cwd
}

/** Types are checked as strictly as those of this repository. */
async function typecheck(cwd: string, file: string): Promise<void> {
  const compilerOptions = {
    ...(await Bun.file(join(root, 'tsconfig.json')).json()).compilerOptions,
    noUnusedLocals: false,
    noUnusedParameters: false,
    // Generators' own code is not written for it.
    exactOptionalPropertyTypes: false,
    noUncheckedIndexedAccess: false,
    lib: ['esnext', 'dom', 'dom.iterable'],
    types: [],
  }
  writeFileSync(join(cwd, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }))
  await run(['bun', 'node_modules/typescript/bin/tsc', '--noEmit'], cwd)
}

describe('a client made of the description works:', () => {
  test('openapi-typescript', async () => {
    const cwd = await nodeProject('types', 'openapi-typescript.ts')
    await run(['bun', 'node_modules/.bin/openapi-typescript', 'openapi.json', '--output', 'types.ts'], cwd)
    await typecheck(cwd, 'openapi-typescript.ts')
    expect(JSON.parse(await run(['bun', 'openapi-typescript.ts', app.url, app.key], cwd))).toEqual(wanted)
  })

  test('hey-api', async () => {
    const cwd = await nodeProject('hey', 'hey-api.ts')
    await run(['bun', 'node_modules/.bin/openapi-ts', '--input', 'openapi.json', '--output', 'client'], cwd)
    await typecheck(cwd, 'hey-api.ts')
    expect(JSON.parse(await run(['bun', 'hey-api.ts', app.url, app.key], cwd))).toEqual(wanted)
  })

  test('openapi-python-client', async () => {
    const cwd = await project('python', 'openapi-python-client.py')
    const packages = join(cwd, 'packages')
    const env = { PYTHONPATH: `${packages}:${cwd}`, PATH: `${packages}/bin:${process.env.PATH}` }
    await run(['python3', '-m', 'pip', 'install', '-q', '--target', packages, PYTHON_CLIENT], cwd)
    const generate = ['generate', '--path', 'openapi.json', '--meta', 'none', '--output-path', 'threadbox_client']
    await run(['python3', '-m', 'openapi_python_client', ...generate], cwd, env)
    const used = await run(['python3', 'openapi-python-client.py', app.url, app.key], cwd, env)
    expect(JSON.parse(used)).toEqual(wanted)
  }, 300_000)
})
