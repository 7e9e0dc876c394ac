import type { Sample } from './conversation.ts'
import type { Look } from './watch.ts'

/** All moments of the day in which about this many messages a second were sent. */
export interface Band {
  /** The mean of the band's messages a second. */
  rate: number
  messages: number
  seconds: number
  /** The time to the first chunk, for messages in a conversation that has its sandbox. */
  p50: number
  p99: number
  /** The time to the first chunk of first messages, for which a sandbox is made elsewhere. */
  p50WithCreate: number
  p99WithCreate: number
  /** The server's use of one core. */
  cpu: number
}

/** Fewer messages say nothing about the slowest hundredth. */
const FEWEST = 200

/** Groups the times between looks by their rate, with a band for each number of messages a second. */
export function toBands(samples: readonly Sample[], looks: readonly Look[], width: number): Band[] {
  const spans = looks.slice(1).map((end, index) => {
    const begin = looks[index] ?? end
    const inside = samples.filter(({ atMs }) => atMs >= begin.atMs && atMs < end.atMs)
    const seconds = (end.atMs - begin.atMs) / 1000
    return { inside, seconds, cpuSeconds: end.cpuSeconds - begin.cpuSeconds, rate: inside.length / seconds }
  })
  const grouped = Map.groupBy(spans, ({ rate }) => Math.floor(rate / width))
  return [...grouped]
    .sort(([one], [other]) => one - other)
    .map(([, group]) => {
      const seconds = sum(group.map(each => each.seconds))
      const all = group.flatMap(each => each.inside)
      const timesOf = (isFirst: boolean) =>
        all.filter(each => each.isFirst === isFirst && !each.problem).map(each => each.firstChunkMs)
      const [later, first] = [timesOf(false), timesOf(true)]
      return {
        ...{ rate: all.length / seconds, messages: all.length, seconds },
        ...{ p50: percentile(later, 50), p99: percentile(later, 99) },
        ...{ p50WithCreate: percentile(first, 50), p99WithCreate: percentile(first, 99) },
        cpu: sum(group.map(each => each.cpuSeconds)) / seconds,
      }
    })
    .filter(({ messages }) => messages >= FEWEST)
}

/** Finds the first band, after the one with the lowest rate, whose p99 is at least twice as high as that one's. */
export const findDoubled = ([lowest, ...higher]: readonly Band[]): Band | undefined =>
  higher.find(({ p99 }) => lowest && p99 >= 2 * lowest.p99)

const sum = (values: readonly number[]) => values.reduce((all, each) => all + each, 0)

function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN
}
