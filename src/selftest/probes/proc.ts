import type { Probe } from '../probe.ts'
import { insideProbe, NOT_INSIDE, runInside } from '../run-inside.ts'
import { excuseOwnKernel } from './own-kernel.ts'

export const proc: readonly Probe[] = [
  insideProbe({
    id: 'proc/started-programs',
    tried: 'writes the settings that name programs which the kernel starts',
    meaning: 'A program inside could have the kernel start a program of its choice on the host, as root.',
  }),
  insideProbe({
    id: 'proc/settings',
    tried: 'writes settings of the kernel in /proc',
    meaning: 'A program inside could change how the host works, for all on it.',
    excuse: excuseOwnKernel,
  }),
  insideProbe({
    id: 'proc/sysrq',
    tried: 'gives the kernel commands by sysrq',
    meaning: 'A program inside could restart the machine, or kill every process of it.',
    excuse: excuseOwnKernel,
  }),
  insideProbe({
    id: 'proc/sys',
    tried: 'writes settings of the kernel and of hardware in /sys',
    meaning: 'A program inside could change how the hardware of the machine works.',
  }),
  insideProbe({
    id: 'proc/cgroups',
    tried: 'writes the files of cgroups',
    meaning: 'A program inside could lift its limits, or leave them.',
    excuse: excuseOwnKernel,
  }),
  insideProbe({
    id: 'proc/kernel-memory',
    tried: 'reads the memory of the kernel',
    meaning: 'A program inside could read what all processes of the machine have in memory.',
  }),
  insideProbe({
    id: 'proc/kernel-messages',
    tried: "reads the kernel's messages and traces",
    meaning: 'A program inside could read what the kernel says about the host.',
  }),
  insideProbe({
    id: 'proc/kernel-lists',
    tried: "reads the kernel's lists of timers and firmware",
    meaning: 'A program inside could learn what runs on the host, and on what machine.',
  }),
  insideProbe({
    id: 'proc/memory-lists',
    tried: "reads the kernel's lists of its memory",
    meaning: 'Attacks on the kernel would be easier.',
    excuse: ({ isolation }) =>
      isolation === 'container'
        ? 'Engines of containers let root inside read these lists, which have sizes and counts and no data.'
        : undefined,
  }),
  insideProbe({
    id: 'proc/kernel-addresses',
    tried: 'reads where the code of the kernel is in memory',
    meaning: 'Attacks on the kernel would be easier.',
  }),
  insideProbe({
    id: 'proc/keys',
    tried: "lists the kernel's keys",
    meaning: 'A program inside could learn of keys that the host keeps in the kernel.',
  }),
  {
    id: 'proc/other-processes',
    tried: 'sees a process of the host',
    meaning: 'A program inside could read the command lines of the host, and send its processes signals.',
    excuse: ({ environment }) => (environment.executable ? undefined : NOT_INSIDE),
    async run(subject) {
      const word = `threadbox-selftest-${crypto.randomUUID()}`
      await using process = Bun.spawn(['sleep', '600'], {
        argv0: word,
        stdio: ['ignore', 'ignore', 'ignore'],
      })
      const found = await runInside(subject, 'proc/other-processes', { words: [word.slice(0, -1)] })
      if (process.exitCode !== null) throw new Error('the process of the host has ended')
      return found
    },
  },
]
