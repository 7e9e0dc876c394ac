import { readlink } from 'node:fs/promises'
import type { Probe } from '../probe.ts'
import { insideProbe, NOT_INSIDE, runInside } from '../run-inside.ts'

const kinds = [
  ['user', 'a user namespace', 'Root inside could gain every capability over a part of the kernel of its own.'],
  ['mount', 'a mount namespace', 'A program inside could arrange its files anew, and what is hidden could be seen.'],
  ['network', 'a network namespace', 'A program inside could reach parts of the network code that are for root alone.'],
  ['processes', 'a process namespace', 'A program inside could hide processes from the kill of its tree.'],
  ['host-name', 'a namespace of host names', 'A program inside could reach code of the kernel that it does not need.'],
  ['ipc', 'a namespace of shared memory', 'A program inside could keep memory where the server does not look.'],
  ['cgroup', 'a namespace of cgroups', 'A program inside could reach the files of its own limits.'],
] as const

export const namespaces: readonly Probe[] = [
  ...kinds.map(([name, what, meaning]) =>
    insideProbe({ id: `namespaces/${name}`, tried: `makes ${what}, by unshare and by clone`, meaning }),
  ),
  insideProbe({
    id: 'namespaces/clone3',
    tried: 'makes a namespace by clone3, whose arguments no filter can see',
    meaning: 'The filter of system calls could be evaded.',
  }),
  insideProbe({
    id: 'namespaces/join',
    tried: 'joins the namespaces of another process',
    meaning: 'A program inside could enter the namespaces of the guest, of others, or of the host.',
  }),
  insideProbe({
    id: 'namespaces/rename-host',
    tried: 'changes the name of the machine',
    meaning: 'A program inside could give the host another name.',
  }),
  {
    id: 'namespaces/own',
    tried: 'shares a namespace with the host or with another sandbox',
    meaning: 'What is in that namespace, as the network or the list of processes, could be used inside.',
    excuse({ environment, isolation }) {
      if (isolation === 'gvisor' || isolation === 'microvm')
        return 'It has a kernel of its own, whose namespaces have numbers of their own.'
      return environment.executable ? undefined : NOT_INSIDE
    },
    async run(subject) {
      const [own, others] = await Promise.all(
        [subject.environment, subject.other].map(environment => runInside(subject, 'namespaces/own', { environment })),
      )
      const found: string[] = []
      for (const name of own ?? []) {
        const [kind = ''] = name.split(':')
        if ((await readlink(`/proc/self/ns/${kind}`)) === name) found.push(`${name} is the host's`)
        if (others?.includes(name)) found.push(`${name} is another sandbox's too`)
      }
      return found
    },
  },
]
