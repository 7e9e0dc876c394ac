import { runCommand } from '../../environment/run-command.ts'
import type { Subject } from '../subject.ts'
import { findTraces, type HostTraces, processesWith, readLink } from './host-traces.ts'

/** A sandbox that was used, filled with programs that resist their end, and removed. */
export interface RemovedSandbox {
  id: string
  /** The word in the names of its files and in its programs' command lines. */
  word: string
  /** Looks for what this machine still has of the sandbox. */
  traces(): HostTraces
}

/** The key is the sandbox that attacks, which each run of the selftest makes anew. */
const removed = new WeakMap<object, Promise<RemovedSandbox>>()

/** Makes a sandbox, uses it and removes it, once for all probes that look at it. */
export function removedSandbox(subject: Subject): Promise<RemovedSandbox> {
  const found = removed.get(subject.environment) ?? useAndRemove(subject)
  removed.set(subject.environment, found)
  return found
}

/** Returns a number of seconds that no other process on this machine sleeps for. */
export const newWord = (): string => String(10_000_000 + Math.floor(Math.random() * 89_999_999))

/** Returns a shell script that starts programs which outlive signals and the end of their session. */
export const stayers = (word: string): string => {
  const deaf = `trap '' HUP INT TERM QUIT; sleep ${word}; sleep ${word}`
  return [
    `(${deaf}) >/dev/null 2>&1 & ((${deaf}) >/dev/null 2>&1 &)`,
    `(setsid sh -c "${deaf}" || sh -c "${deaf}") >/dev/null 2>&1 &`,
    `(env -i setsid sh -c "${deaf}" || sh -c "${deaf}") >/dev/null 2>&1 &`,
  ].join('\n')
}

async function useAndRemove(subject: Subject): Promise<RemovedSandbox> {
  const { dataDirectory, isolation } = subject
  const environment = await subject.create()
  const word = newWord()
  const { id } = environment
  const places = `mkdir -p /home/user /tmp; for p in /tmp /home/user /dev/shm; do echo ${word} >$p/left-${word}; done`
  await environment.spawn({ command: `${stayers(word)}\nsleep ${word}` })
  await runCommand(environment, {
    command: `${places}; (mkfifo /tmp/fifo-${word}; cat /tmp/fifo-${word}) >/dev/null 2>&1 &`,
  })
  // gVisor's processes run in its own kernel, where this machine cannot see them.
  const isSeen = isolation === 'namespaces' || isolation === 'container'
  const network = isSeen ? networkOf(word) : undefined
  await subject.remove(environment)
  return { id, word, traces: () => findTraces({ id, word, network }, dataDirectory) }
}

/** Finds the name in /proc of the network namespace of the process with this word. Undefined when this machine does not see the process. */
function networkOf(word: string): string | undefined {
  for (const pid of processesWith(text => text.split('\0').includes(word))) {
    const network = readLink(`/proc/${pid}/ns/net`)
    if (network !== '' && network !== readLink('/proc/self/ns/net')) return network
  }
  return undefined
}
