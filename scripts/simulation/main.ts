/** A day's conversations with one server whose sandboxes are elsewhere. usage: scripts/simulate */
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { findDoubled, toBands } from './bands.ts'
import { print } from './print.ts'
import { runDay } from './run-day.ts'

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    conversations: { type: 'string', default: '10000' },
    messages: { type: 'string', default: '4' },
    minutes: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
  },
})
const BANDS = 8

const plan = {
  conversations: Number(values.conversations),
  messages: Number(values.messages),
  dayMs: Number(values.minutes) * 60_000,
}
const load = () => loadavg()[0] ?? 0
const loadBefore = load()
const day = await runDay(plan)
// The busiest hour has twice the mean.
const most = (plan.conversations * plan.messages * 2) / (plan.dayMs / 1000)
const bands = toBands(day.samples, day.looks, Math.max(1, most / BANDS))
const report = { ...plan, cores: availableParallelism(), loadBefore, loadAfter: load(), ...day, bands }
if (values.json) console.log(JSON.stringify({ ...report, doubled: findDoubled(bands) ?? null }, null, 2))
else print(report)
