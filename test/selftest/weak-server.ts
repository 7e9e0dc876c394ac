/**
 * Runs probes, which are named by their areas or ids, on a server with one weakness, and prints the outcomes as JSON. Run it in a network
 * namespace of its own: what is let through goes to wherever it leads.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configOf, openSubject } from '../../src/selftest/open-subject.ts'
import { areaOf } from '../../src/selftest/probe.ts'
import { probes } from '../../src/selftest/probes/all.ts'
import { runProbes } from '../../src/selftest/run.ts'
import type { Subject } from '../../src/selftest/subject.ts'
import { readConfig } from '../../src/start/config.ts'
import { type Weakness, weaknesses, weakPlugins } from './weaknesses.ts'

const WITHIN_MS = 240_000

const [name = '', ...wanted] = process.argv.slice(2)
if (!Object.hasOwn(weaknesses, name)) throw new Error(`there is no weakness ${name}`)
const weakness: Weakness = weaknesses[name as keyof typeof weaknesses]

const directory = mkdtempSync(join(tmpdir(), 'threadbox-weak-'))
const dataDirectory = join(directory, 'data')
const config = await readConfig([...(weakness.settings ?? [])], {})
const stop = new AbortController()
const { subject, close } = await openSubject({
  config: configOf(config, { backend: 'nsjail', dataDirectory }),
  hostDirectory: join(directory, 'host'),
  log: line => line.startsWith('network ') || console.error(line),
  signal: stop.signal,
  plugins: weakPlugins(weakness, join(directory, 'nsjail')),
})
try {
  const { rules } = weakness
  const weak: Subject = rules
    ? { ...subject, environment: await subject.create(rules), create: given => subject.create({ ...rules, ...given }) }
    : subject
  const chosen = probes.filter(probe => [areaOf(probe), probe.id].some(each => wanted.includes(each)))
  // A busy machine is no finding.
  const patient = chosen.map(probe => ({ ...probe, withinMs: WITHIN_MS }))
  console.log(JSON.stringify(await runProbes(weak, patient)))
} finally {
  await close().catch(error => console.error(error))
  await removeAll()
  rmSync(directory, { recursive: true, force: true })
}
process.exit(0)

/** What a weak removal has left, by a backend that is not weak. */
async function removeAll(): Promise<void> {
  const sandboxes = join(dataDirectory, 'sandboxes')
  if (!existsSync(sandboxes) || readdirSync(sandboxes).length === 0) return
  const [{ backend } = {}] = weakPlugins({}, directory)
  const strong = backend?.({ dataDirectory, serveProxy: (_, socket) => void socket.destroy(), log: console.error })
  for (const id of (await strong?.list()) ?? []) await (await strong?.open(id))?.destroy()
  await strong?.close()
}
