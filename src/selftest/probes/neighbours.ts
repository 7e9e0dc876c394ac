import { readEach } from '../../read/bytes.ts'
import { commandOf } from '../../start/executable.ts'
import type { Probe } from '../probe.ts'
import { runInside, variablesOf } from '../run-inside.ts'
import type { Subject } from '../subject.ts'
import { type ProgramProbe, withProgram } from './bait-probe.ts'
import { processesWith } from './host-traces.ts'

/** Makes a probe of what the other sandbox keeps, where it could make that. */
const ofPeer = (kept: string, probe: ProgramProbe): Probe => {
  const made = withProgram(probe)
  return {
    ...made,
    excuse: subject =>
      made.excuse?.(subject) ??
      (subject.peerKeeps.includes(kept) ? undefined : 'No sandbox can make one here, so there is none to reach.'),
  }
}

/** Lists the ids that this machine gives to the other sandbox's processes. */
const peerProcesses = ({ peer }: Subject): string[] => processesWith(command => command.includes(peer))

/**
 * Locks and watches in the other sandbox what both have, uses it in this one and on the host, and returns what the other one noticed.
 * `kind` is `files`, `devices` or `program`.
 */
async function findShared(subject: Subject, kind: 'files' | 'devices' | 'program'): Promise<readonly string[]> {
  const { other, signal } = subject
  const env = variablesOf(subject)
  const command = [...(other.executable ?? []), 'probe', 'neighbours/watch', kind]
  const watcher = await other.spawn({ command, env, stdin: 'pipe', signal })
  const ready = Promise.withResolvers<void>()
  let said = ''
  const reading = readEach(watcher.stdout, chunk => {
    said += Buffer.from(chunk).toString()
    if (said.includes('ready\n')) ready.resolve()
  })
  reading.then(() => ready.reject(new Error('the watch has ended early')), ready.reject)
  await ready.promise
  const found: string[] = []
  for (const program of ['neighbours/lock', 'neighbours/use']) {
    found.push(...(await runInside(subject, program, { words: [kind] })), ...(await runHere(subject, program, kind)))
  }
  await watcher.stdin?.close()
  await reading
  const lines = said.split('\n').filter(line => line !== '' && line !== 'ready')
  if (lines.at(-1) !== 'end') throw new Error('the watch did not come to its end')
  return [...found, ...lines.slice(0, -1)]
}

/** Runs one of the sandboxes' programs on this machine. The program must change nothing. */
async function runHere(subject: Subject, program: string, word: string): Promise<readonly string[]> {
  const child = Bun.spawn(commandOf('probe', program, word), {
    env: { ...process.env, ...variablesOf(subject) },
    stdio: ['ignore', 'pipe', 'ignore'],
    signal: subject.signal,
  })
  const lines = (await child.stdout.text()).split('\n').filter(line => line !== '')
  if (lines.at(-1) !== 'end') throw new Error('it did not come to its end on this machine')
  return lines.slice(0, -1).map(line => `${line}, as the host sees it`)
}

export const neighbours: readonly Probe[] = [
  {
    ...withProgram({
      id: 'neighbours/files',
      tried: 'looks for files of another sandbox, by their names in every directory',
      meaning: 'One sandbox could read what another has in its files.',
    }),
    withinMs: 60_000,
  },
  ofPeer('socket', {
    id: 'neighbours/sockets',
    tried: 'connects to a socket of another sandbox that has a name and no file',
    meaning: 'One sandbox could speak with services of another.',
  }),
  ofPeer('port', {
    id: 'neighbours/ports',
    tried: 'connects to a port of the loopback of another sandbox',
    meaning: 'One sandbox could use servers that another has for itself, as databases and previews.',
  }),
  withProgram({
    id: 'neighbours/processes',
    tried: 'looks for processes of another sandbox',
    meaning: 'One sandbox could see the command lines of another, and what they contain.',
  }),
  withProgram({
    id: 'neighbours/signals',
    tried: 'asks whether it may signal processes of another sandbox',
    meaning: 'One sandbox could stop what runs in another.',
    words: peerProcesses,
  }),
  ofPeer('memory', {
    id: 'neighbours/shared-memory',
    tried: 'opens shared memory of another sandbox',
    meaning: 'One sandbox could read and change what another keeps in shared memory.',
  }),
  ofPeer('semaphores', {
    id: 'neighbours/semaphores',
    tried: 'opens semaphores of another sandbox',
    meaning: 'One sandbox could hold up programs of another.',
  }),
  ofPeer('messages', {
    id: 'neighbours/messages',
    tried: 'opens a message queue of another sandbox',
    meaning: 'One sandbox could read and send messages of another.',
  }),
  ofPeer('queue', {
    id: 'neighbours/queues',
    tried: 'opens a POSIX queue of another sandbox',
    meaning: 'One sandbox could read and send messages of another.',
  }),
  {
    ...withProgram({
      id: 'neighbours/shared-files',
      tried: 'locks and watches files that all sandboxes have, as /etc/passwd and /bin/sh',
      meaning: 'One sandbox could hold up another or this machine by a lock, or see which programs they start.',
    }),
    isAlone: true,
    run: subject => findShared(subject, 'files'),
  },
  {
    ...withProgram({
      id: 'neighbours/shared-program',
      tried: "locks and watches the files of threadbox's program in every sandbox",
      meaning: 'One sandbox could see when another is started.',
      excuse: ({ backendName }) =>
        backendName === 'docker'
          ? "All containers have threadbox's program by one volume: one can see when another starts, and no more."
          : undefined,
    }),
    isAlone: true,
    run: subject => findShared(subject, 'program'),
  },
  {
    ...withProgram({
      id: 'neighbours/shared-devices',
      tried: 'locks and watches devices that all sandboxes have, as /dev/null',
      meaning: 'One sandbox could see when another or this machine uses a device.',
      excuse: ({ backendName, isRoot }) =>
        backendName === 'nsjail' && !isRoot
          ? 'An ordinary user cannot make devices, so sandboxes have those of this machine.'
          : undefined,
    }),
    isAlone: true,
    run: subject => findShared(subject, 'devices'),
  },
]
