/** What the server holds in a run of 500 tool calls and 200,000 deltas. */
import { readFileSync, writeFileSync } from 'node:fs'
import { type ModelRequest, startModelServer } from '../../test/support/model-server.ts'
import { call, eventsOf, inDirectory, memoryOf, say, serve } from './server.ts'
import { line, report } from './table.ts'

const CALLS = 500
const DELTAS = 400
/** As the fake model cuts it. */
const text = 'twelve chars'.repeat(DELTAS)

const model = startModelServer()
// Hundreds of long requests are not what is measured.
model.requests.push = () => 0
let step = 0
let compactions = 0
const next = ({ tools }: ModelRequest) => {
  if (tools.length > 0) {
    return step++ < CALLS ? { text, calls: [{ name: 'Bash', input: { command: 'seq 100' } }] } : { text: 'Done.' }
  }
  compactions += 1
  return { text: 'Counted so far.' }
}

/** Since the last reset, in MB. */
const peakOf = (pid: number) =>
  Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

await inDirectory(async directory => {
  const env = { ANTHROPIC_API_KEY: 'sk-bench', ANTHROPIC_BASE_URL: model.access('anthropic').baseUrl }
  const { url, pid, stop } = await serve(directory, [], env)
  const { id } = JSON.parse(await call(url, 'POST', '/v1/sandboxes', { agent: 'coder' }))
  model.play({ text: 'Warm.' })
  for await (const _ of eventsOf(await say(url, 'coder', 'Warm up.', { sandboxId: id })));
  await Bun.sleep(1500)
  const before = memoryOf(pid, 'Rss')
  // Resets the peak.
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  model.play(...Array.from({ length: CALLS * 2 }, () => next))
  const startedAt = performance.now()
  const counts = new Map<string, number>()
  const response = await say(url, 'coder', 'Count.', { sandboxId: id, options: { maxTurns: CALLS * 2 } })
  let error = ''
  for await (const chunk of eventsOf(response)) {
    counts.set(chunk.type ?? '', (counts.get(chunk.type ?? '') ?? 0) + 1)
    if ('errorText' in chunk) error = String(chunk.errorText)
  }
  const seconds = (performance.now() - startedAt) / 1000
  const peak = peakOf(pid)
  await Bun.sleep(3000)
  report([
    line('server before the run, RSS', { unit: 'MB', rounds: [[before]] }),
    line('  at its peak', { unit: 'MB', rounds: [[peak]] }),
    line('  three seconds after', { unit: 'MB', rounds: [[memoryOf(pid, 'Rss')]] }),
  ])
  const ran = `${counts.get('tool-output-available')} tool calls, ${counts.get('text-delta')} deltas`
  console.log(`\n${ran}, ${compactions} compactions, ${seconds.toFixed(1)} s ${error}`)
  await call(url, 'DELETE', `/v1/sandboxes/${id}`)
  await stop()
})
await model.stop()
