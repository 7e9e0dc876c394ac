import type { Family, Point } from './series.ts'

/** The content type of what `prometheusText` returns. */
export const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Writes figures in the text format that Prometheus reads. Names are translated as the OpenTelemetry specification says. */
export const prometheusText = (families: readonly Family[]): string =>
  families
    .filter(({ points }) => points.length > 0)
    .map(textOf)
    .join('')

function textOf(family: Family): string {
  const name = nameOf(family)
  const head = `# HELP ${name} ${family.help}\n# TYPE ${name} ${family.kind}\n`
  return head + family.points.map(point => linesOf(name, family, point)).join('')
}

const units: Readonly<Record<string, string>> = { s: '_seconds', By: '_bytes', USD: '_usd' }

/** `threadbox.exec.duration` in `s` is `threadbox_exec_duration_seconds`; a counter ends with `_total`. */
function nameOf({ name, unit, kind }: Family): string {
  return `${words(name)}${units[unit] ?? ''}${kind === 'counter' ? '_total' : ''}`
}

const words = (name: string) => name.replaceAll('.', '_')

function linesOf(name: string, { labelNames, bounds }: Family, { labels, value, counts }: Point): string {
  const pairs = labelNames.map((label, index): [string, string] => [words(label), labels[index] ?? ''])
  if (!counts || !bounds) return `${name}${braced(pairs)} ${numberText(value)}\n`
  let count = 0
  const buckets = counts.map((inBucket, index) => {
    count += inBucket
    return `${name}_bucket${braced([...pairs, ['le', numberText(bounds[index] ?? Number.POSITIVE_INFINITY)]])} ${count}\n`
  })
  return `${buckets.join('')}${name}_sum${braced(pairs)} ${numberText(value)}\n${name}_count${braced(pairs)} ${count}\n`
}

const braced = (pairs: readonly (readonly [string, string])[]): string =>
  pairs.length === 0 ? '' : `{${pairs.map(([label, value]) => `${label}="${escapeLabel(value)}"`).join(',')}}`

const escapeLabel = (value: string) => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

const numberText = (value: number): string => (value === Number.POSITIVE_INFINITY ? '+Inf' : String(value))
