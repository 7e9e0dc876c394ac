import type { Probe } from '../probe.ts'
import { insideProbe } from '../run-inside.ts'

export const mounts: readonly Probe[] = [
  insideProbe({
    id: 'mounts/tmpfs',
    tried: 'mounts a tmpfs',
    meaning: "A program inside could use the host's memory beyond the disk limit, and cover files of the guest.",
  }),
  insideProbe({
    id: 'mounts/kernel',
    tried: "mounts file systems of the kernel's settings, as proc, sysfs and debugfs",
    meaning: 'A program inside could read and change settings of the kernel that its sandbox hides.',
  }),
  insideProbe({
    id: 'mounts/cgroup',
    tried: 'mounts the file system of cgroups',
    meaning: 'A program inside could lift its limits, and start programs on the host.',
  }),
  insideProbe({
    id: 'mounts/devices',
    tried: 'mounts the file system of devices',
    meaning: 'A program inside could use the devices of the machine.',
  }),
  insideProbe({
    id: 'mounts/overlay',
    tried: 'mounts an overlay',
    meaning: 'A program inside could reach a part of the kernel that has had many bugs.',
  }),
  insideProbe({
    id: 'mounts/bind',
    tried: 'binds a directory to another place',
    meaning: 'A program inside could show itself what its sandbox hides.',
  }),
  insideProbe({
    id: 'mounts/remount',
    tried: 'makes a mount writable again',
    meaning: 'A program inside could write where it may only read.',
  }),
  insideProbe({
    id: 'mounts/propagation',
    tried: 'changes to whom mounts are passed on',
    meaning: 'Mounts made inside could appear on the host.',
  }),
  insideProbe({
    id: 'mounts/unmount',
    tried: 'removes a mount',
    meaning: 'A program inside could see what a mount hides.',
  }),
  insideProbe({
    id: 'mounts/pivot-root',
    tried: 'takes another directory as its root',
    meaning: 'A program inside could leave the files of its sandbox.',
  }),
  insideProbe({
    id: 'mounts/file-system-contexts',
    tried: 'mounts by the newer calls fsopen, fspick, fsconfig and fsmount',
    meaning: 'A program inside could mount what it likes.',
  }),
  insideProbe({
    id: 'mounts/open-tree',
    tried: 'copies its tree of mounts',
    meaning: 'A program inside could keep files that its sandbox hides.',
  }),
  insideProbe({
    id: 'mounts/move',
    tried: 'moves a mount',
    meaning: 'A program inside could uncover what a mount hides.',
  }),
  insideProbe({
    id: 'mounts/attributes',
    tried: 'changes the attributes of a mount',
    meaning: 'A program inside could write where it may only read.',
  }),
  insideProbe({
    id: 'mounts/replace',
    tried: 'renames and removes /proc, /dev and what is mounted there',
    meaning: 'A program inside could give the guest and other programs a false /proc or /dev.',
  }),
]
