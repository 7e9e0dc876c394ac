import type { Terminal } from '@xterm/xterm'

/** More than any program repeats at once: xterm would do each, and the page would stand still meanwhile. */
const MOST = 10_000

/** Sequences that do something so often as their parameter says: ECMA-48 has them by these. */
const repeated = [...'bLMSTIZ@PX'].map(final => ({ final }))
const sideways = ['@', 'A'].map(final => ({ intermediates: ' ', final }))
const columns = ['}', '~'].map(final => ({ intermediates: "'", final }))

/** Leaves out what a program has repeated beyond reason. */
export function boundRepeats({ parser }: Terminal): void {
  for (const each of [...repeated, ...sideways, ...columns])
    parser.registerCsiHandler(each, params => params.some(count => typeof count === 'number' && count > MOST))
}
