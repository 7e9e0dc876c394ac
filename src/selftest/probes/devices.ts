import type { Probe } from '../probe.ts'
import { insideProbe } from '../run-inside.ts'
import { excuseOwnKernel } from './own-kernel.ts'

const device = (name: string, tried: string, meaning: string): Probe =>
  insideProbe({ id: `devices/${name}`, tried, meaning })

export const devices: readonly Probe[] = [
  device('disks', 'makes and opens nodes of disks', 'A program inside could read and write the disks of the host.'),
  device('loops', 'makes and opens loop devices', 'A program inside could read disks of other sandboxes.'),
  device('memory', 'opens the memory of the machine', 'A program inside could read and change all memory.'),
  device('kernel-log', 'opens the log of the kernel', 'A program inside could read and forge messages of the kernel.'),
  device(
    'virtual-machines',
    'opens the device of virtual machines',
    'A program inside could reach a part of the kernel that has had many bugs.',
  ),
  insideProbe({
    id: 'devices/fuse',
    tried: 'opens the device of FUSE',
    meaning: 'A program inside could make the kernel wait for its answers.',
    excuse: excuseOwnKernel,
  }),
  insideProbe({
    id: 'devices/tunnels',
    tried: 'opens devices of networks',
    meaning: 'A program inside could send packets past the rules of the network.',
    excuse: excuseOwnKernel,
  }),
  device('vsock', 'opens devices of vsock', 'A program inside could reach services of the hypervisor.'),
  device(
    'input',
    'opens input, screens and sound',
    'A program inside could read what is typed at the machine, and see and hear it.',
  ),
  device('consoles', 'opens consoles of the machine', 'A program inside could read and write consoles of the host.'),
]
