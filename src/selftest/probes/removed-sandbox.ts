import { runCommand } from '../../environment/run-command.ts'
import type { Subject } from '../subject.ts'
import { findTraces, type HostTraces, processesWith, readLink } from './host-traces.ts'

/** A sandbox that was in use, full of programs that would rather stay, and was removed. */
export interface RemovedSandbox {
  id: string
  /** What its programs and a file of its own are named by. */
  word: string
  /** Looks for what this machine still has of it. */
  traces(): HostTraces
}

/** By the sandbox that attacks, which is another for each run of the selftest. */
const removed = new WeakMap<object, Promise<RemovedSandbox>>()

/** Makes a sandbox, uses it and removes it. Several probes look at the same one. */
export function removedSandbox(subject: Subject): Promise<RemovedSandbox> {
  const found = removed.get(subject.environment) ?? useAndRemove(subject)
  removed.set(subject.environment, found)
  return found
}

/** A number of seconds that nothing else on this machine sleeps for. */
export const newWord = (): string => String(10_000_000 + Math.floor(Math.random() * 89_999_999))

/** A shell's words that start programs which no signal and no end of a session ends. */
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
  // gVisor's processes are its own kernel's.
  const isSeen = isolation === 'namespaces' || isolation === 'container'
  const network = isSeen ? networkOf(word) : undefined
  await subject.remove(environment)
  return { id, word, traces: () => findTraces({ id, word, network }, dataDirectory) }
}

/** What /proc calls the network namespace of the process with a word. Undefined when this machine does not see it. */
function networkOf(word: string): string | undefined {
  for (const pid of processesWith(text => text.split('\0').includes(word))) {
    const network = readLink(`/proc/${pid}/ns/net`)
    if (network !== '' && network !== readLink('/proc/self/ns/net')) return network
  }
  return undefined
}
