/** How long a cancel over HTTP takes at random moments of an agent's run: in text, in a tool, while the model is silent. */
import { globSync, readFileSync } from 'node:fs'
import { type ModelTurn, startModelServer } from '../../test/support/model-server.ts'
import { call, eventsOf, inDirectory, say, serve } from './server.ts'
import { atMost, line, report } from './table.ts'

const CANCELS = 100
const nap = `4321.${process.pid}`

const bash = (command: string) => ({ name: 'Bash', input: { command } })
const runs: { name: string; turns: ModelTurn[] }[] = [
  { name: 'text', turns: [{ text: 'word '.repeat(400), everyMs: 2 }] },
  { name: 'tool', turns: [{ text: 'I run it. ', calls: [bash(`setsid sleep ${nap} & echo; sleep ${nap}`)] }] },
  { name: 'silence', turns: [{ calls: [bash('sleep 0.02')] }, { silent: true }] },
  { name: 'all', turns: [...Array.from({ length: 40 }, () => ({ text: 'And. ', calls: [bash('echo'), bash('ls')] }))] },
]

const model = startModelServer()
const cancel = line('cancel over HTTP, random moment', { goal: atMost(100, 'ms', 99) })
const kinds = runs.map(({ name }) => line(`  of which in ${name}`))
const readers = line('from cancel to the reader’s end')
const upstream = line('from cancel to the end of its model call')
let alive = 0
let idle = 0

function sleepers(): number {
  return globSync('/proc/[0-9]*/cmdline').filter(path => {
    try {
      return readFileSync(path, 'utf8').split('\0').includes(nap)
    } catch {
      return false
    }
  }).length
}

await inDirectory(async directory => {
  const env = { ANTHROPIC_API_KEY: 'sk-bench', ANTHROPIC_BASE_URL: model.access('anthropic').baseUrl }
  const { url, stop } = await serve(directory, [], env)
  const { id } = JSON.parse(await call(url, 'POST', '/v1/sandboxes', { agent: 'coder' }))
  for (let index = 0; index < CANCELS; index++) {
    const kind = index % runs.length
    model.play(...(runs[kind]?.turns ?? []))
    const response = await say(url, 'coder', 'Go.', { sandboxId: id })
    let isEnded = 0
    const reading = (async () => {
      for await (const { type } of eventsOf(response)) if (type === 'finish') isEnded = performance.now()
    })()
    await Bun.sleep(Math.random() * 200)
    const startedAt = performance.now()
    const { status } = JSON.parse(await call(url, 'DELETE', `/v1/chat/coder/${id}/stream`))
    const tookMs = performance.now() - startedAt
    alive += sleepers()
    await reading
    while (model.openCalls > 0) await Bun.sleep(1)
    const closedMs = performance.now() - startedAt
    if (status !== 'cancelled') {
      idle += 1
      continue
    }
    cancel.rounds.push([tookMs])
    kinds[kind]?.rounds.push([tookMs])
    readers.rounds.push([Math.max(0, isEnded - startedAt)])
    upstream.rounds.push([closedMs])
  }
  await call(url, 'DELETE', `/v1/sandboxes/${id}`)
  await stop()
})
await model.stop()
report([cancel, ...kinds, readers, upstream])
console.log(`\nprocesses alive when a cancel had answered: ${alive}; runs that had ended before: ${idle}`)
