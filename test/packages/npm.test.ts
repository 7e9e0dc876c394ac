import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { makeNpmPackages } from '../../scripts/packages/npm.ts'
import { type Architecture, readRelease } from '../../scripts/packages/release.ts'
import { run } from '../../scripts/packages/run.ts'
import { patiently, plainEnvironment, temporaryDirectory } from '../support/server.ts'
import { serveRegistry } from './npm-registry.ts'

patiently()

/** In place of the executable: it says how it is called, and ends as it is told. */
const program = `#!/bin/sh
case "$1" in
  exit) exit "$2" ;;
  kill) kill -"$2" $$ ;;
  wait) trap 'echo got TERM; exit 7' TERM; trap 'echo got INT; exit 8' INT; echo waits; while :; do sleep 0.05; done ;;
  *) for word; do printf '<%s>' "$word"; done; cat ;;
esac
`

let directory = ''
const at = (path: string) => join(directory, path)
let files: string[] = []
let registry: Awaited<ReturnType<typeof serveRegistry>>
const env = () => ({
  ...plainEnvironment,
  HOME: directory,
  npm_config_registry: registry.url.href,
  npm_config_cache: at('cache'),
  npm_config_update_notifier: 'false',
})

beforeAll(async () => {
  directory = temporaryDirectory()
  mkdirSync(at('out'))
  writeFileSync(at('program'), program, { mode: 0o755 })
  const architectures: Architecture[] = [
    { name: 'x64', debian: 'amd64', executable: at('program') },
    { name: 'arm64', debian: 'arm64', executable: at('program') },
  ]
  const documents = { license: 'MIT', notices: 'notices' }
  files = await makeNpmPackages({ release: await readRelease(), documents, architectures, output: at('out') })
  registry = await serveRegistry(files)
})
afterAll(async () => {
  await registry.stop(true)
  rmSync(directory, { recursive: true })
})

test('there is one package for all, which names one a platform at its own version', async () => {
  const { version } = await readRelease()
  expect(files.map(file => basename(file))).toEqual(
    ['linux-x64-', 'linux-arm64-', ''].map(part => `threadbox-${part}${version}.tgz`),
  )
  const contents = await Promise.all(
    files.map(async file => (await run(['tar', '-tzf', file])).trim().split('\n').sort()),
  )
  const platform = ['LICENSE', 'NOTICES.txt', 'README.md', 'bin/threadbox', 'package.json'].map(
    path => `package/${path}`,
  )
  const launcher = ['LICENSE', 'README.md', 'bin/threadbox.js', 'package.json'].map(path => `package/${path}`)
  expect(contents).toEqual([platform, platform, launcher])
})

describe.each([
  ['npm', ['npm', 'install', '--no-audit', '--no-fund', 'threadbox']],
  ['bun', [process.execPath, 'install', '--no-save', 'threadbox']],
] as const)('installed by %s', (name, install) => {
  const place = () => at(name)
  const command = () => join(place(), 'node_modules/.bin/threadbox')
  const start = (words: string[], stdin: 'ignore' | Blob = 'ignore') =>
    Bun.spawn([command(), ...words], { cwd: place(), env: env(), stdin, stdout: 'pipe', stderr: 'pipe' })

  beforeAll(async () => {
    mkdirSync(place())
    writeFileSync(join(place(), 'package.json'), JSON.stringify({ dependencies: { threadbox: '*' } }))
    await run(install, { cwd: place(), env: env() })
  })

  test('it brings this platform alone', () => {
    const platforms = ['linux-x64', 'linux-arm64'].filter(each =>
      existsSync(join(place(), 'node_modules/@threadbox', each)),
    )
    expect(platforms).toEqual([`linux-${process.arch}`])
    expect(readFileSync(join(place(), `node_modules/@threadbox/linux-${process.arch}/bin/threadbox`), 'utf8')).toBe(
      program,
    )
  })

  test('words, input and output pass through', async () => {
    const child = start(['a b', '--c=$d', ''], new Blob(['from stdin']))
    expect(await child.stdout.text()).toBe('<a b><--c=$d><>from stdin')
    expect(await child.exited).toBe(0)
  })

  test('so do exit codes, and an end by a signal', async () => {
    expect(await start(['exit', '42']).exited).toBe(42)
    const killed = start(['kill', 'KILL'])
    await killed.exited
    expect(killed.signalCode).toBe('SIGKILL')
  })

  test.each([
    ['SIGTERM', 'TERM', 7],
    ['SIGINT', 'INT', 8],
  ] as const)('%s reaches the executable, whose exit code is the command’s', async (signal, word, code) => {
    const child = start(['wait'])
    const reader = child.stdout.getReader()
    const read = async () => new TextDecoder().decode((await reader.read()).value)
    expect(await read()).toBe('waits\n')
    child.kill(signal)
    expect(await read()).toBe(`got ${word}\n`)
    expect(await child.exited).toBe(code)
  })
})

test('without the package of the platform it says what is missing', async () => {
  const alone = at('alone')
  mkdirSync(alone)
  await run(['tar', '-xzf', files.at(-1) ?? '', '-C', alone])
  const child = Bun.spawn([join(alone, 'package/bin/threadbox.js'), 'version'], { env: env(), stderr: 'pipe' })
  expect(await child.stderr.text()).toContain(`the package @threadbox/linux-${process.arch} is not installed`)
  expect(await child.exited).toBe(125)
})
