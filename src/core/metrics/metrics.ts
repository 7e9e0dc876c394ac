import type { Metrics, Runtime } from '../runtime.ts'
import { createCounts } from './count.ts'
import { serverFamilies } from './figures.ts'
import { processFamilies } from './process-figures.ts'
import type { Family } from './series.ts'

/** Counts what these observers report from now on. */
export function createMetrics(
  { observers, engines }: Pick<Runtime, 'observers' | 'engines'>,
  getRuntime: () => Runtime,
): Metrics {
  const counts = createCounts(new Set(engines.keys()))
  observers.subscribe(counts.count)
  const others: (() => readonly Family[])[] = []
  return {
    include: read => void others.push(read),
    families: async () => [
      ...others.flatMap(read => read()),
      ...(await serverFamilies(getRuntime())),
      ...counts.families(),
      ...(await processFamilies()),
    ],
  }
}
