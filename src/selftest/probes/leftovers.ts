import { readdirSync } from 'node:fs'
import type { Probe } from '../probe.ts'
import { NOT_INSIDE, runInside } from '../run-inside.ts'
import type { Subject } from '../subject.ts'
import { findInEngine } from './engine-lists.ts'
import { type HostTraces, readText } from './host-traces.ts'
import { newWord, removedSandbox, stayers } from './removed-sandbox.ts'

/** Processes are gone when the server says that a sandbox is removed; the rest may go in the background. */
const SETTLES_WITHIN_MS = 15_000
const LOOK_EVERY_MS = 20

const onNsjail = ({ backendName }: Subject) =>
  backendName === 'nsjail' ? undefined : 'Only sandboxes on nsjail leave this on the machine.'
const onNsjailAsRoot = (subject: Subject) =>
  onNsjail(subject) ??
  (subject.isRoot ? undefined : 'An ordinary user cannot make this, so that a sandbox leaves none.')
const onDocker = ({ backendName }: Subject) =>
  backendName === 'docker' ? undefined : 'Only sandboxes on docker leave this on the machine.'

/** Looks until there is nothing left or the time is over: a part may still be on its way out. */
async function settled({ signal }: Subject, look: () => readonly string[] | Promise<readonly string[]>) {
  const deadline = performance.now() + SETTLES_WITHIN_MS
  for (;;) {
    const found = await look()
    if (found.length === 0 || performance.now() > deadline) return found
    signal.throwIfAborted()
    await new Promise(resolve => setTimeout(resolve, LOOK_EVERY_MS))
  }
}

const ofRemoved = (
  kind: keyof HostTraces,
  probe: Omit<Probe, 'run' | 'excuse'>,
  excuse?: (subject: Subject) => string | undefined,
): Probe => ({
  ...probe,
  withinMs: 60_000,
  ...(excuse && { excuse }),
  async run(subject) {
    const { traces } = await removedSandbox(subject)
    return await settled(subject, () => traces()[kind])
  },
})

export const leftovers: readonly Probe[] = [
  {
    id: 'leftovers/processes',
    tried: 'goes on after the sandbox was removed, in sessions of its own and deaf to signals',
    meaning: 'Programs of a sandbox that you have removed would go on, with what they know and use.',
    withinMs: 60_000,
    run: async subject => (await removedSandbox(subject)).traces().processes,
  },
  ofRemoved(
    'mounts',
    {
      id: 'leftovers/mounts',
      tried: 'looks for mounts of a removed sandbox',
      meaning: 'Disks of removed sandboxes would take space, and could be read on this machine.',
    },
    onNsjail,
  ),
  ofRemoved(
    'loopDevices',
    {
      id: 'leftovers/loop-devices',
      tried: 'looks for loop devices of a removed sandbox',
      meaning: 'This machine would run out of loop devices, and disks of removed sandboxes would take space.',
    },
    onNsjailAsRoot,
  ),
  ofRemoved(
    'cgroups',
    {
      id: 'leftovers/cgroups',
      tried: 'looks for cgroups of a removed sandbox',
      meaning: "Each sandbox would leave some of this machine's memory taken.",
    },
    onNsjailAsRoot,
  ),
  ofRemoved('directories', {
    id: 'leftovers/directories',
    tried: 'looks for files of a removed sandbox on this machine',
    meaning: 'What a sandbox had in its files would still be there after you removed it.',
  }),
  ofRemoved('networks', {
    id: 'leftovers/networks',
    tried: 'looks for what keeps the network namespace of a removed sandbox',
    meaning: 'Each sandbox would leave a network behind, until this machine has no more.',
  }),
  {
    id: 'leftovers/containers',
    tried: 'looks for containers, volumes and images of a removed sandbox',
    meaning: 'What a sandbox had in its files would still be there after you removed it.',
    excuse: onDocker,
    withinMs: 60_000,
    async run(subject) {
      const { id } = await removedSandbox(subject)
      return await settled(subject, () => findInEngine(id, subject.signal))
    },
  },
  {
    id: 'leftovers/contents',
    tried: 'looks in a new sandbox for files of a removed one',
    meaning: 'A sandbox could read what an earlier one has had in its files.',
    withinMs: 60_000,
    excuse: ({ environment }) => (environment.executable ? undefined : NOT_INSIDE),
    async run(subject) {
      const { word } = await removedSandbox(subject)
      const environment = await subject.create()
      try {
        return await runInside({ ...subject, peer: `left-${word}` }, 'neighbours/files', { environment })
      } finally {
        await subject.remove(environment)
      }
    },
  },
  {
    id: 'leftovers/shared-memory',
    tried: 'looks for shared memory of sandboxes on this machine',
    meaning:
      'Programs of this machine could read what sandboxes keep in shared memory, and it would stay when they are removed.',
    excuse: ({ peerKeeps }) =>
      peerKeeps.includes('memory') ? undefined : 'No sandbox can make it here, so there is none to leave.',
    async run() {
      const key = String(0x7b0c)
      const lines = ['shm', 'sem', 'msg'].flatMap(kind =>
        readText(`/proc/sysvipc/${kind}`)
          .split('\n')
          .filter(line => line.trim().split(/\s+/)[0] === key)
          .map(() => `this machine has the ${kind} of a sandbox`),
      )
      return lines
    },
  },
  {
    id: 'leftovers/background',
    tried: 'goes on after its background process was removed',
    meaning: 'A process could go on after it was stopped.',
    excuse: ({ environment }) =>
      environment.processes ? undefined : 'The server keeps background processes of this backend itself.',
    async run({ environment }) {
      const word = newWord()
      const { processes } = environment
      if (!processes) throw new Error('there are none')
      const { pid } = await processes.start({ command: `${stayers(word)}\necho up; sleep ${word}` })
      await processes.read(pid, 0, { wait: true })
      await processes.remove(pid)
      return (await findInside(environment, word)).map(each => `${each} was not killed`)
    },
  },
  {
    id: 'leftovers/descriptors',
    tried: 'makes and removes sandboxes and counts the files that the server has open',
    meaning: 'The server would run out of open files after some thousand sandboxes.',
    isAlone: true,
    withinMs: 60_000,
    async run(subject) {
      const use = async () => subject.remove(await subject.create())
      await use()
      const before = countDescriptors()
      const ROUNDS = 3
      for (let round = 0; round < ROUNDS; round++) await use()
      const left = () => {
        const more = countDescriptors() - before
        return more < ROUNDS ? [] : [`the server has ${more} more files open after ${ROUNDS} sandboxes`]
      }
      return await settled(subject, left)
    },
  },
]

const countDescriptors = () => readdirSync('/proc/self/fd').length

/** Finds the processes inside that have this word in their command line. Each line also has the path in /proc. */
async function findInside(environment: Subject['environment'], word: string): Promise<string[]> {
  const list = `for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo " $p"; done 2>/dev/null`
  const child = await environment.spawn({ command: list })
  const text = await new Response(child.stdout).text()
  await child.exited
  return text.split('\n').filter(line => line.startsWith(`sleep ${word} `))
}
