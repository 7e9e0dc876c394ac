import type { Terminal } from '@xterm/xterm'

/** No program repeats more than this at once. Without the limit xterm would do each repeat, and the page would freeze. */
const MOST = 10_000

/** These letters end the sequences of ECMA-48 that repeat something as often as their parameter says. */
const repeated = [...'bLMSTIZ@PX'].map(final => ({ final }))
const sideways = ['@', 'A'].map(final => ({ intermediates: ' ', final }))
const columns = ['}', '~'].map(final => ({ intermediates: "'", final }))

/** Removes repeats that are beyond reason from a program's output. */
export function boundRepeats({ parser }: Terminal): void {
  for (const each of [...repeated, ...sideways, ...columns])
    parser.registerCsiHandler(each, params => params.some(count => typeof count === 'number' && count > MOST))
}
