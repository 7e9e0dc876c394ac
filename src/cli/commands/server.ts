import { partNames } from '../bench/rows.ts'
import { json, place, verbose } from '../common-flags.ts'
import type { Command } from './command.ts'

/** In words of its own: the probes are not loaded to show help. */
const selftestArea = `the probes of one area alone: system-calls, namespaces, mounts, proc, devices, guest, host-files, limits, egress, files, \
neighbours, leftovers`

/** Commands for the server on this machine. */
export const serverCommands: readonly Command[] = [
  {
    name: 'serve',
    help: 'run the server',
    more: 'Each flag is also THREADBOX_NAME in the environment and "name" in the file of --config.',
    settings: 'all',
    examples: ['threadbox serve --port 8080 --model anthropic/claude-sonnet-4-6'],
  },
  {
    name: 'doctor',
    help: 'check what the server needs, and show what is missing',
    settings: 'all',
    examples: ['threadbox doctor', 'threadbox doctor --backend docker'],
  },
  {
    name: 'selftest',
    operands: '[BACKEND…]',
    help: 'try to get out of sandboxes of this machine, and show what held',
    more: `It tests every backend that is ready here, or those that are named, with sandboxes of its own; nothing of them is left, and a \
server that runs is not touched. A server on the same --data-dir shows the last result. Exit code: 0 when all held, 1 when something got \
through, 2 for a mistake in the flags, 3 when something could not be tried.`,
    flags: [{ name: 'area', value: 'AREA', help: selftestArea }, json, verbose],
    settings: 'all',
    examples: [
      'sudo threadbox selftest',
      'threadbox selftest nsjail --json',
      'sudo threadbox selftest docker --docker-runtime runsc',
    ],
  },
  {
    name: 'bench',
    operands: '[PART…]',
    help: 'measure this executable on this machine',
    more: `It takes one to two minutes, on a temporary data directory below --data-dir or the system's. Nothing of it is left, and a server \
that runs is not touched, but slows it down. Parts: ${partNames.join(', ')}.`,
    flags: [
      { name: 'capacity', help: 'what this machine holds instead: sandboxes, chats, readers, growth' },
      { name: 'quick', help: 'about 20 seconds, with smaller bursts and files' },
      { name: 'against', value: 'FILE', help: 'another executable, measured in the same rounds' },
      json,
      { name: 'markdown', help: 'print a table of Markdown' },
    ],
    settings: ['data-dir', 'backend', 'nsjail-path', 'docker-image', 'docker-runtime'],
    examples: ['sudo threadbox bench', 'sudo threadbox bench --quick exec create', 'sudo threadbox bench --capacity'],
  },
  {
    name: 'upgrade',
    operands: '[FILE|URL]',
    help: 'replace this executable by another one, and restart its server',
    more: `The former one is kept beside it and comes back by itself when the new one is not ready in time. A URL has to be https, and wants \
--sha256.`,
    flags: [
      { name: 'sha256', value: 'SUM', help: 'the SHA-256 that it has to have' },
      { name: 'ready-within', value: 'SECONDS', default: '60', help: 'how long the new server may take to be ready' },
      { name: 'back', help: 'put back the former executable' },
      { name: 'with-database', help: 'with --back: and the database as it was before the upgrade' },
    ],
    settings: place,
    examples: ['sudo threadbox upgrade ./threadbox-0.2.0 --sha256 9f86d081…', 'sudo threadbox upgrade --back'],
  },
  {
    name: 'service install',
    help: 'install the server as a service of systemd',
    more: 'A second install changes only what is new, and restarts the server only then.',
    flags: [
      { name: 'print', help: 'print the unit and write nothing' },
      { name: 'user', value: 'NAME', help: 'the account that it runs under' },
      { name: 'root', value: 'DIR', default: '/', help: 'install into an image; nothing is started' },
    ],
    settings: 'all',
    examples: [
      'sudo ./threadbox service install --port 8080',
      'sudo OPENAI_API_KEY=… ./threadbox service install --model openai/gpt-5.2',
    ],
  },
  {
    name: 'service status',
    help: 'show whether it is installed and answers',
    flags: [{ name: 'root', value: 'DIR', default: '/', help: 'the root of an image' }],
    examples: ['sudo threadbox service status'],
  },
  {
    name: 'service remove',
    help: 'stop server and sandboxes; data and settings stay',
    flags: [{ name: 'root', value: 'DIR', default: '/', help: 'the root of an image' }],
    examples: ['sudo threadbox service remove'],
  },
]
