import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeArchive, writeSums } from '../../scripts/packages/archive.ts'
import { type Architecture, readRelease, root } from '../../scripts/packages/release.ts'
import { patiently, plainEnvironment, temporaryDirectory } from '../support/server.ts'

patiently()

let directory = ''
const at = (path: string) => join(directory, path)
const archive = `threadbox-linux-${process.arch}.tar.gz`
let server: ReturnType<typeof Bun.serve>

beforeAll(() => {
  directory = temporaryDirectory()
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: async ({ url }) => {
      const file = Bun.file(at(`release${new URL(url).pathname}`))
      return (await file.exists()) ? new Response(file) : new Response('not found', { status: 404 })
    },
  })
})
afterAll(async () => {
  await server.stop(true)
  rmSync(directory, { recursive: true })
})

/** A release whose executable says that it ran, and where something is installed already. */
beforeEach(async () => {
  for (const name of readdirSync(directory)) rmSync(at(name), { recursive: true })
  for (const name of ['release', 'prefix/bin', 'tmp']) mkdirSync(at(name), { recursive: true })
  writeFileSync(at('prefix/bin/threadbox'), 'the one before')
  writeFileSync(at('program'), `#!/bin/sh\necho ran >>${at('ran')}\necho 1.2.3\n`, { mode: 0o755 })
  const documents = {
    ...{ manualPage: '.TH', completions: { bash: 'b', zsh: 'z', fish: 'f' } },
    ...{ notices: 'notices', license: 'MIT', changelog: '# Changelog' },
  }
  const name = process.arch === 'arm64' ? 'arm64' : 'x64'
  const architecture: Architecture = { name, debian: '', executable: at('program') }
  await makeArchive({ release: await readRelease(), architecture, documents, output: at('release') })
  writeSums(at('release'))
})

async function install(env: Record<string, string> = {}) {
  const child = Bun.spawn(['sh', join(root, 'packages/install.sh')], {
    env: {
      ...plainEnvironment,
      THREADBOX_BASE_URL: server.url.href,
      THREADBOX_PREFIX: at('prefix'),
      TMPDIR: at('tmp'),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  expect(readdirSync(at('tmp'))).toEqual([])
  return { stdout, stderr, code }
}
const sumOf = (file: string) => new Bun.CryptoHasher('sha256').update(readFileSync(file)).digest('hex')

test('install.sh installs the executable, the manual page and the completions', async () => {
  const { stdout, stderr, code } = await install()
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toBe(
    `threadbox 1.2.3 is installed: ${at('prefix/bin/threadbox')}\nPut ${at('prefix/bin')} into your PATH.\n`,
  )
  expect(readFileSync(at('prefix/bin/threadbox'), 'utf8')).toBe(readFileSync(at('program'), 'utf8'))
  expect(readdirSync(at('prefix/bin'))).toEqual(['threadbox'])
  const shared = ['man/man1/threadbox.1.gz', 'bash-completion/completions/threadbox', 'zsh/site-functions/_threadbox']
  expect(shared.map(path => existsSync(at(`prefix/share/${path}`)))).toEqual([true, true, true])
})

test('it takes the sum that one has from elsewhere', async () => {
  const sum = sumOf(at(`release/${archive}`))
  rmSync(at('release/SHA256SUMS'))
  expect((await install({ THREADBOX_SHA256: sum })).code).toBe(0)
})

describe('it runs and installs nothing', () => {
  const cases: [string, () => Record<string, string> | undefined, RegExp][] = [
    [
      'when the archive was tampered with',
      () => {
        const bytes = readFileSync(at(`release/${archive}`))
        bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
        writeFileSync(at(`release/${archive}`), bytes)
        return undefined
      },
      /is not what its SHA-256 says. Nothing was installed/,
    ],
    [
      'when it is not the sum from elsewhere',
      () => ({ THREADBOX_SHA256: '0'.repeat(64) }),
      /is not what its SHA-256 says/,
    ],
    [
      'when SHA256SUMS does not name it',
      () => {
        const path = at('release/SHA256SUMS')
        writeFileSync(path, readFileSync(path, 'utf8').replaceAll(archive, `other-${archive}`))
        return undefined
      },
      /SHA256SUMS does not name threadbox-linux-/,
    ],
    [
      'when there is no archive',
      () => {
        rmSync(at(`release/${archive}`))
        return undefined
      },
      /install\.sh: cannot fetch http/,
    ],
    ['without a place', () => ({ THREADBOX_BASE_URL: '' }), /set THREADBOX_BASE_URL/],
    [
      'from a place that anybody on the way could change',
      () => ({ THREADBOX_BASE_URL: 'http://example.com/x' }),
      /must begin with https:/,
    ],
  ]
  test.each(cases)('%s', async (_, change, said) => {
    const { code, stdout, stderr } = await install(change())
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(said)
    expect(existsSync(at('ran'))).toBe(false)
    expect(readFileSync(at('prefix/bin/threadbox'), 'utf8')).toBe('the one before')
  })
})

test('an executable that does not run here does not take the place of one that does', async () => {
  rmSync(at(`release/${archive}`))
  writeFileSync(at('program'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  const name = archive.replace('.tar.gz', '')
  mkdirSync(at(`tree/${name}`), { recursive: true })
  Bun.spawnSync(['cp', at('program'), at(`tree/${name}/threadbox`)])
  Bun.spawnSync(['tar', '-czf', at(`release/${archive}`), '-C', at('tree'), name])
  writeSums(at('release'))
  const { code, stderr } = await install()
  expect([code, stderr]).toEqual([1, expect.stringContaining('it does not run here')])
  expect(readFileSync(at('prefix/bin/threadbox'), 'utf8')).toBe('the one before')
})
