import { rootCapabilities } from '../../guest/host/root-capabilities.ts'
import type { Probe } from '../probe.ts'
import { insideProbe, NOT_INSIDE, runInside } from '../run-inside.ts'

export const systemCalls: readonly Probe[] = [
  insideProbe({
    id: 'system-calls/filter',
    tried: 'runs without a filter of system calls, or gains rights by a setuid program',
    meaning: "Every system call of the host's kernel could be made inside, with all of its bugs.",
  }),
  {
    id: 'system-calls/capabilities',
    tried: 'has capabilities beyond those that root inside needs',
    meaning: 'Root inside could do what is for the root of the machine.',
    excuse: ({ environment }) => (environment.executable ? undefined : NOT_INSIDE),
    run: async subject => await runInside(subject, 'system-calls/capabilities', { words: rootCapabilities }),
  },
  insideProbe({
    id: 'system-calls/kernel-modules',
    tried: 'loads and removes modules of the kernel',
    meaning: 'A program inside could run its code in the kernel of the host.',
  }),
  insideProbe({
    id: 'system-calls/kexec',
    tried: 'loads another kernel',
    meaning: 'A program inside could replace the kernel of the host.',
  }),
  insideProbe({
    id: 'system-calls/bpf',
    tried: 'loads a BPF program',
    meaning: 'A program inside could run code in the kernel, and watch what others do.',
  }),
  insideProbe({
    id: 'system-calls/perf-events',
    tried: 'counts events of the processor',
    meaning: 'A program inside could observe what other processes of the machine do.',
  }),
  insideProbe({
    id: 'system-calls/userfaultfd',
    tried: 'handles page faults itself',
    meaning: 'Many attacks on the kernel would be easier, as they need it to wait at the right moment.',
  }),
  insideProbe({
    id: 'system-calls/fanotify',
    tried: 'watches a whole file system',
    meaning: 'A program inside could see which files others open, and keep them from it.',
  }),
  insideProbe({
    id: 'system-calls/keyrings',
    tried: "reads and writes the kernel's keyrings",
    meaning: 'A program inside could use keys that other processes of the machine keep in the kernel.',
  }),
  insideProbe({
    id: 'system-calls/reboot',
    tried: 'restarts the machine',
    meaning: 'A program inside could restart or stop the machine.',
  }),
  insideProbe({
    id: 'system-calls/clocks',
    tried: 'sets the clock',
    meaning: 'A program inside could change the time of the machine.',
  }),
  insideProbe({
    id: 'system-calls/swap',
    tried: 'adds and removes swap space',
    meaning: 'A program inside could read memory of other processes as it is swapped out.',
  }),
  insideProbe({
    id: 'system-calls/kernel-log',
    tried: 'reads the log of the kernel',
    meaning: 'A program inside could read what the kernel says about the host.',
  }),
  insideProbe({
    id: 'system-calls/io-ports',
    tried: 'uses the ports of the hardware',
    meaning: 'A program inside could talk to the hardware of the machine.',
  }),
  insideProbe({
    id: 'system-calls/accounting',
    tried: 'changes the accounting of processes, and quotas of disks',
    meaning: 'A program inside could see what runs on the host, and lift limits of disks.',
  }),
  insideProbe({
    id: 'system-calls/io-uring',
    tried: 'makes system calls by io_uring',
    meaning: 'The filter of system calls could be evaded: it does not see what io_uring does.',
  }),
  insideProbe({
    id: 'system-calls/file-handles',
    tried: 'opens files by their number instead of a path',
    meaning: 'A program inside could read files of a whole disk, whatever its paths show.',
  }),
  insideProbe({
    id: 'system-calls/memory-placement',
    tried: 'moves memory between nodes of the machine',
    meaning: 'A program inside could slow others down.',
  }),
  insideProbe({
    id: 'system-calls/personality',
    tried: 'makes its memory executable by another personality',
    meaning: 'Attacks on programs inside would be easier.',
  }),
  insideProbe({
    id: 'system-calls/typing-on-terminals',
    tried: 'types on a terminal that it shares',
    meaning: 'A program inside could type commands where somebody has attached a terminal.',
  }),
  insideProbe({
    id: 'system-calls/vsock',
    tried: 'connects to the machine below by vsock',
    meaning: 'A program inside could reach services of the hypervisor, past all rules of the network.',
  }),
  insideProbe({
    id: 'system-calls/packet-sockets',
    tried: 'reads and sends raw packets',
    meaning: 'A program inside could see and forge packets.',
  }),
  insideProbe({
    id: 'system-calls/audit-log',
    tried: "listens to the kernel's audit log",
    meaning: 'A program inside could follow what the host logs for its security.',
  }),
  insideProbe({
    id: 'system-calls/kernel-crypto',
    tried: 'uses the ciphers of the kernel',
    meaning: 'A program inside could reach a part of the kernel that has had many bugs.',
  }),
  insideProbe({
    id: 'system-calls/rare-sockets',
    tried: 'makes sockets of rare kinds',
    meaning: 'A program inside could reach parts of the kernel that few have looked at.',
  }),
  insideProbe({
    id: 'system-calls/high-bits',
    tried: 'hides arguments from the filter behind their upper half',
    meaning: 'The filter of system calls could be evaded.',
  }),
  insideProbe({
    id: 'system-calls/x32',
    tried: 'makes system calls by their x32 numbers',
    meaning: 'The filter of system calls could be evaded.',
    excuse: () => (process.arch === 'x64' ? undefined : 'This processor has no x32.'),
  }),
]
