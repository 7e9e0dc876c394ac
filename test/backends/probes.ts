import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Plugin } from '../../src/plugin-api/index.ts'
import { configOf, type OpenSubject, openSubject } from '../../src/selftest/open-subject.ts'
import { probes } from '../../src/selftest/probes/all.ts'
import { runProbe } from '../../src/selftest/run.ts'
import { readConfig } from '../../src/start/config.ts'
import { leftovers } from '../support/leftovers.ts'

const root = join(import.meta.dir, '../..')
const WITHIN_MS = 120_000

const hasOwnAddress = Object.values(networkInterfaces()).some(found => found?.some(each => !each.internal))

/** What is excused on this machine whatever the backend is. */
const excusedHere = [
  ...(process.arch === 'x64' ? [] : ['system-calls/x32']),
  ...(hasOwnAddress ? [] : ['egress/own-addresses']),
]

export interface ProbedBackend {
  backend: string
  /** Flags of `serve`, known when the tests run. */
  settings?: () => readonly string[]
  runtime?: string
  /** In place of those of this build. */
  plugins?: readonly Plugin[]
}

/**
 * Every probe of `threadbox selftest` as a test, on a server's runtime of the tests' own. What is excused has to be among `excused`, by its
 * id, and each of these has to be excused: nothing is left out by accident.
 */
export function describeProbes(
  name: string,
  { backend, settings = () => [], runtime, plugins }: ProbedBackend,
  excused: readonly string[] = [],
): void {
  describe(`probes on ${name}`, () => {
    const directory = mkdtempSync(join(tmpdir(), 'threadbox-probes-'))
    const hostDirectory = mkdtempSync(join(tmpdir(), 'threadbox-probes-host-'))
    const stop = new AbortController()
    let opened: OpenSubject | undefined

    beforeAll(async () => {
      const flags = ['--nsjail-path', join(root, '.cache/nsjail/bin/nsjail'), ...settings()]
      const config = await readConfig(flags, {})
      rmSync(hostDirectory, { recursive: true })
      opened = await openSubject({
        config: configOf(config, { backend, dataDirectory: directory, ...(runtime !== undefined && { runtime }) }),
        hostDirectory,
        // What is refused goes to the log too: it is much.
        log: (line, level) => void (level === 'error' && console.error(line)),
        signal: stop.signal,
        ...(plugins && { plugins }),
      })
    }, WITHIN_MS)

    afterAll(async () => {
      const ids = opened ? [opened.subject.environment.id, opened.subject.other.id] : []
      await opened?.close()
      for (const each of [directory, hostDirectory]) rmSync(each, { recursive: true, force: true })
      expect(await leftovers(...ids)).toEqual([])
    }, WITHIN_MS)

    test.each(probes.map(probe => [`${probe.id}: ${probe.tried}: regression`, probe] as const))(
      '%s',
      async (_, probe) => {
        const { outcome, found } = await runProbe(opened!.subject, probe)
        if ([...excused, ...excusedHere].includes(probe.id)) expect([outcome, found.length]).toEqual(['excused', 1])
        else expect([outcome, found]).toEqual(['held', []])
      },
      WITHIN_MS,
    )
  })
}
