import type { ProbeOutcome, ProbeResult, SelftestedBackend, SelftestReport } from '../../model/selftest.ts'
import { probeOutcomes } from '../../model/selftest.ts'
import { printable } from '../printable.ts'
import { nameOf } from './subjects.ts'

const words: Readonly<Record<ProbeOutcome, string>> = {
  held: 'held',
  leaked: 'LEAKED',
  untried: 'untried',
  excused: 'excused',
}
const [OUTCOME_WIDTH, INDENT] = [9, '             ']

/** A line for each probe, what was found and what it means below those that did not hold, and a summary of each backend. */
export function toTable({ backends, isRoot }: SelftestReport): string {
  const width = Math.max(...backends.flatMap(({ probes }) => probes.map(({ id }) => id.length)), 0)
  const tried = backends.filter(({ probes }) => probes.length > 0)
  const parts = tried.map(each => [
    `${nameOf(each)}${each.isolation ? ` (${each.isolation}, ${isRoot ? 'as root' : 'as an ordinary user'})` : ''}`,
    ...each.probes.flatMap(probe => linesOf(probe, width)),
    '',
  ])
  return printable([...parts.flat(), ...backends.map(summaryOf)].join('\n'))
}

function linesOf({ outcome, id, tried, meaning, found }: ProbeResult, width: number): string[] {
  const line = `  ${words[outcome].padEnd(OUTCOME_WIDTH)}${id.padEnd(width)}  ${tried}`
  if (outcome === 'held') return [line]
  return [line, ...(outcome === 'leaked' ? [`${INDENT}${meaning}`] : []), ...found.map(each => `${INDENT}${each}`)]
}

/** One line of a backend: how many of its probes ended how. */
export function summaryOf(each: SelftestedBackend): string {
  if (each.notReady !== undefined) return `${nameOf(each)}: not ready\n${indented(each.notReady)}`
  if (each.failed !== undefined) return `${nameOf(each)}: could not be tried\n${indented(each.failed)}`
  const counts = probeOutcomes.map(outcome => ({
    outcome,
    count: each.probes.filter(probe => probe.outcome === outcome).length,
  }))
  const shown = counts.filter(({ outcome, count }) => outcome === 'held' || count > 0)
  return `${nameOf(each)}: ${shown.map(({ outcome, count }) => `${count} ${words[outcome]}`).join(', ')} (${(each.ms / 1000).toFixed(1)} s)`
}

const indented = (text: string): string =>
  text
    .split('\n')
    .map(line => `  ${line}`)
    .join('\n')
