import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import type { Probe } from '../probe.ts'
import { NOT_INSIDE, runInside } from '../run-inside.ts'
import type { Subject } from '../subject.ts'

export const isLoopback = (address: string): boolean => address.startsWith('127.') || address === '::1'

export interface ProgramProbe extends Omit<Probe, 'run'> {
  /** The program to run. The default is the one with the probe's id. */
  program?: string
  words?(subject: Subject): readonly string[]
}

/** Makes a probe that runs a program inside. The words may depend on the machine. */
export const withProgram = ({ program, words, ...probe }: ProgramProbe): Probe => ({
  ...probe,
  excuse: subject => (subject.environment.executable ? probe.excuse?.(subject) : NOT_INSIDE),
  run: subject => runInside(subject, program ?? probe.id, { words: words?.(subject) ?? [] }),
})

/** Makes such a probe whose program tries to visit the bait. */
export const baitProbe = (probe: ProgramProbe): Probe => ({
  ...withProgram(probe),
  run: subject => caughtBy(subject, probe.id, probe.program ?? probe.id, probe.words?.(subject) ?? []),
})

/**
 * Runs a program with the bait's word and port before its other words. Returns what the program reports, and whether the bait had a
 * visit. With `isBare` the program gets only its own words.
 */
export async function caughtBy(
  subject: Subject,
  id: string,
  program: string,
  words: readonly string[],
  { isBare = false } = {},
): Promise<readonly string[]> {
  const { bait } = subject
  const heading = isBare ? [] : [bait.wordOf(id), `${bait.port}`]
  const found = await runInside(subject, program, { words: [...heading, ...words] })
  await settle(subject, `${id}/settled`)
  const visits = bait.visits(id)
  return visits === 0 ? found : [...found, `a server of this machine had ${visits} visits from inside`]
}

/** Resolves when the bait has counted everything that was sent to it before. */
async function settle({ bait, signal }: Subject, tag: string): Promise<void> {
  for (const address of bait.addresses) {
    const before = bait.visits(tag)
    await new Promise<void>((resolve, reject) => {
      const socket = connect({ host: address, port: bait.port })
      socket.on('error', reject).on('close', () => resolve())
      socket.end(`${bait.wordOf(tag)}\n`)
      socket.resume()
    })
    const datagram = createSocket(address.includes(':') ? 'udp6' : 'udp4')
    datagram.on('error', () => {})
    while (bait.visits(tag) < before + 2) {
      signal.throwIfAborted()
      // One datagram may be lost on its way.
      await new Promise<void>(resolve => datagram.send(`${bait.wordOf(tag)}\n`, bait.port, address, () => resolve()))
      await new Promise(resolve => setTimeout(resolve, 1))
    }
    datagram.close()
  }
}
