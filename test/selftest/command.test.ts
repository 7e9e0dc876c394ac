import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { probeAreas } from '../../src/selftest/probes/all.ts'
import { processesNamed } from '../support/leftovers.ts'
import { Server } from '../support/server.ts'
import { until } from '../support/until.ts'
import { useOneOffs } from '../temporary/support.ts'

const oneOffs = useOneOffs()
/** Its own, so that what others have there is not taken for its. */
const temporary = join(oneOffs.directory, 'tmp')
mkdirSync(temporary, { recursive: true })
const env = { TMPDIR: temporary, DOCKER_HOST: `unix://${temporary}/no-engine.sock` }
const selftest = (...args: string[]) => oneOffs.run(['selftest', ...args], { env })

const expectNothingLeft = async () => {
  await until(() => processesNamed('guard').length === 0, 'the guards are done')
  expect([await oneOffs.left(), readdirSync(temporary)]).toEqual([[], []])
}

test('shows each probe of the backends that are ready here, and why others are not', async () => {
  const { code, stdout } = await selftest('--area', 'mounts')
  expect(stdout).toMatch(/^nsjail \(namespaces, as (root|an ordinary user)\)\n/)
  expect(stdout).toContain('  held     mounts/tmpfs')
  expect(stdout).toMatch(/\n\nnsjail: \d+ held[^\n]* \(\d+\.\d s\)\ndocker: not ready\n[\s\S]*does not answer/)
  expect(stdout).toContain('see: threadbox doctor --backend docker')
  // It has no heading where nothing was tried.
  expect(stdout).not.toMatch(/^docker$/m)
  expect(code).toBe(0)
  await expectNothingLeft()
})

test('prints JSON, and exits with 3 when a backend that was named is not ready', async () => {
  const { code, stdout } = await selftest('--json', '--area', 'mounts', 'nsjail', 'docker')
  const report = JSON.parse(stdout)
  expect([code, report.area, report.isRoot]).toEqual([3, 'mounts', process.getuid?.() === 0])
  const [jails, containers] = report.backends
  expect(jails).toMatchObject({ backend: 'nsjail', isolation: 'namespaces' })
  expect(jails.probes.map(({ area, outcome }: any) => [area, outcome])).toContainEqual(['mounts', 'held'])
  expect(jails.probes[0]).toEqual({
    ...{ id: expect.stringMatching(/^mounts\//), area: 'mounts', outcome: 'held', found: [] },
    ...{ tried: expect.any(String), meaning: expect.any(String), ms: expect.any(Number) },
  })
  expect(containers).toMatchObject({ backend: 'docker', probes: [], notReady: expect.stringContaining('engine') })
})

test('exits with 3 when no backend is ready, and with 2 for names that are none', async () => {
  expect((await selftest('--area', 'mounts', '--nsjail-path', '/nowhere/nsjail')).code).toBe(3)
  const backend = await selftest('nsjial')
  expect([backend.code, backend.stderr]).toEqual([2, expect.stringContaining('did you mean nsjail?')])
  const area = await selftest('--area', 'mount')
  expect([area.code, area.stderr]).toEqual([2, expect.stringContaining('did you mean mounts?')])
})

test('the help names every area', async () => {
  const { stdout } = await oneOffs.run(['selftest', '--help'], { env })
  const text = stdout.replace(/\s+/g, ' ')
  expect(text).toContain(`the probes of one area alone: ${probeAreas.join(', ')} `)
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGKILL', 137],
] as const)('leaves nothing after %s', async (signal, code) => {
  const child = oneOffs.spawn(['selftest', 'nsjail'], { env })
  await until(async () => (await oneOffs.left()).some(line => line.startsWith('process')), 'a sandbox runs')
  child.kill(signal)
  expect(await child.exited).toBe(code)
  await expectNothingLeft()
})

test('runs beside a server, leaves its sandboxes alone, and keeps the last result for it', async () => {
  const server = new Server({ flags: ['--spares', '0'] })
  await server.start()
  try {
    const { id } = (await server.ask('POST', '/v1/sandboxes', { agent: 'echo' })).body
    const ask = () => server.ask('GET', '/v1/server/selftest')
    expect((await ask()).body).toEqual({ selftest: null })
    // What tries only a part is not the result of this machine.
    await selftest('nsjail', '--data-dir', server.dataDirectory, '--area', 'mounts')
    expect((await ask()).body).toEqual({ selftest: null })
    const { stdout } = await selftest('nsjail', '--data-dir', server.dataDirectory, '--json')
    const path = join(server.dataDirectory, 'selftest.json')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(JSON.parse(stdout))
    expect((await ask()).body).toEqual({ selftest: JSON.parse(stdout) })
    expect((await server.exec(id, 'echo alive')).stdout).toBe('alive\n')
    expect((await server.ask('GET', '/v1/sandboxes')).body.sandboxes).toHaveLength(1)
  } finally {
    await server.close()
  }
}, 240_000)
