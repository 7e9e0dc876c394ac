import type { Descriptor } from '../../descriptor.ts'
import { type PumpOptions, pump } from '../../environment/pump.ts'
import type { Libc } from './libc.ts'

/** One output stream of a command. */
export interface Output {
  /** Hands on what is printed as it comes, from now on. Without this it is handed on when it is drained. */
  follow(): void
  /** True when there is output that was not handed on yet. */
  isWaiting(): boolean
  /** Resolves when all that was printed until now is handed on. To be called when the command has ended. */
  drained(): Promise<void>
}

/** Another reader that may read an output from now on, instead of this process. */
export interface OtherReader {
  /** Resolves to false when it does not: nothing is read then. */
  isReading: Promise<boolean>
  /** Resolves when it has read what there is, and reads no more. To be called when the command has ended. */
  drained(): Promise<void>
}

export interface OutputOptions extends Pick<PumpOptions, 'isGone' | 'settleMs'> {
  /** Called when the output is to be followed. */
  offer?: (from: Descriptor) => OtherReader
}

/** The largest size of a pipe that Linux allows an ordinary user. */
const MAX_PIPE_BYTES = 1024 * 1024

export function createOutput(
  from: Descriptor,
  libc: Libc,
  take: (bytes: Uint8Array) => void | Promise<void>,
  { isGone, settleMs, offer }: OutputOptions,
): Output {
  const { pendingBytes, widenPipe: widen } = libc
  const isTerminal = settleMs > 0
  const start = () => pump(from, take, { pendingBytes, isGone, settleMs, ...(!isTerminal && { widen }) })
  let pumped: { drained(): Promise<void> } | undefined
  const follow = () => (pumped ??= start())
  const followByOther = (offered: OtherReader) => {
    const own = offered.isReading.then(isReading => (isReading ? undefined : start()))
    return {
      async drained() {
        if (!(await own)) await offered.drained()
        // Bytes that another reader has left in it are read here from now on.
        await ((await own) ?? start()).drained()
      },
    }
  }
  return {
    follow() {
      if (offer) pumped ??= followByOther(offer(from))
      else follow()
    },
    isWaiting: () => !pumped && libc.pendingBytes(from.number) > 0,
    async drained() {
      for (let taken = 0; !pumped && taken < MAX_PIPE_BYTES; ) {
        const bytes = libc.read(from.number)
        if (!bytes) break
        if (bytes.byteLength === 0) return from.close()
        taken += bytes.byteLength
        await take(bytes)
      }
      // A process that the command has left behind holds the pipe open.
      await follow().drained()
    },
  }
}

/**
 * Times from the start of a command at which its output is looked at. To follow an output costs more than such a command itself:
 * of fifty at once, most end within the last time.
 */
const LOOKS_MS = [4, 12, 36, 108] as const

/**
 * Follows what a command prints, a moment after its start: most commands end before, and to read what they printed once costs less.
 * Calls `onUnderWay` with the first look; both happen at once for one that is hurried. Disposed of when the command has ended.
 */
export function followSoon(
  outputs: readonly Output[],
  { isHurried, onUnderWay }: { isHurried: boolean; onUnderWay: () => void },
): Disposable {
  let timer: Timer | undefined
  const follow = () => {
    for (const each of outputs) each.follow()
  }
  const waitFor = (index: number) => {
    const [last = 0, next] = [LOOKS_MS[index - 1], LOOKS_MS[index]]
    if (next === undefined) return follow()
    timer = setTimeout(() => {
      onUnderWay()
      if (outputs.some(each => each.isWaiting())) follow()
      else waitFor(index + 1)
    }, next - last)
  }
  if (isHurried) {
    follow()
    onUnderWay()
  } else waitFor(0)
  return { [Symbol.dispose]: () => clearTimeout(timer) }
}
