import { beforeAll, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type OpenOptions, useConsole } from './console.ts'

const { server, open } = useConsole()
const path = () => join(server.dataDirectory, 'selftest.json')

const probe = (name: string, outcome: string, found: readonly string[] = []) => ({
  ...{ id: `mounts/${name}`, area: 'mounts', tried: `mounts a ${name}`, outcome, found, ms: 5 },
  meaning: `A process inside could see the ${name}.`,
})
const report = {
  ...{ version: '0.1.0', startedAt: new Date().toISOString(), ms: 41_000, isRoot: true },
  backends: [
    {
      backend: 'nsjail',
      isolation: 'namespaces',
      ms: 9000,
      probes: [probe('tmpfs', 'held'), probe('bind', 'excused')],
    },
    {
      ...{ backend: 'docker', runtime: 'runsc', isolation: 'gvisor', ms: 9000 },
      probes: [
        probe('tmpfs', 'held'),
        probe('overlay', 'leaked', ['an <b>overlay</b> was not refused: 0']),
        probe('proc', 'untried', ['it did not end within 30 seconds']),
      ],
    },
    { backend: 'docker', notReady: 'FAILED   engine: it does not answer', ms: 30, probes: [] },
  ],
}
beforeAll(() => Bun.write(path(), JSON.stringify(report)))

const looks: OpenOptions[] = [{ scheme: 'light' }, { scheme: 'dark' }, { width: 390 }]
for (const look of looks) {
  const how = look.scheme ?? 'small'
  test(`the overview shows the last selftest, what got through and what that means: ${how}`, async () => {
    const opened = await open(look)
    const { page } = opened
    const result = page.getByRole('region', { name: 'Selftest' })
    for (const text of [
      'nsjail (namespaces): 1 held, 1 excused',
      'docker on runsc (gvisor): 1 held, 1 leaked, 1 untried',
      'mounts/overlay mounts a overlay: A process inside could see the overlay.',
      'an <b>overlay</b> was not refused: 0',
      'mounts/proc mounts a proc: It could not be tried.',
      'FAILED engine: it does not answer',
    ])
      await result.getByText(text).first().waitFor()
    await result.scrollIntoViewIfNeeded()
    expect(await opened.accessibility()).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
    await opened.picture(`overview-selftest-${how}`)
  })
}

test('and how to run one where none has run', async () => {
  rmSync(path())
  const { page } = await open()
  await page.getByText(`threadbox selftest --data-dir ${server.dataDirectory}`).waitFor()
})
