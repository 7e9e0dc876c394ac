import type { Probe } from '../probe.ts'
import { insideProbe } from '../run-inside.ts'

const READ = "A program inside could read the host's files."
const WRITTEN = "A program inside could change the host's files."

const hostFile = (name: string, tried: string, meaning: string): Probe =>
  insideProbe({ id: `host-files/${name}`, tried, meaning })

export const hostFiles: readonly Probe[] = [
  hostFile('paths', 'opens a file of the host by its path, and up from the root', READ),
  hostFile('links', 'opens files of the host by symbolic links', READ),
  hostFile('process-roots', 'opens files of the host by the roots and directories of processes', READ),
  hostFile('descriptors', 'opens files of the host by descriptors that were left open', READ),
  hostFile('chroot', 'leaves a root that it has changed twice', READ),
  hostFile('hard-links', 'makes hard links to files of the host', WRITTEN),
  hostFile('renames', 'moves its files over those of the host', WRITTEN),
  hostFile('writes', 'writes and removes files of the host by links and roots', WRITTEN),
  hostFile(
    'engine-sockets',
    "connects to the sockets of container engines and of the host's services",
    'A program inside could have the engine start a container with all rights, and control the machine.',
  ),
]
