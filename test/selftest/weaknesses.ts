import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nsjail } from 'nsjail-wrapper'
import { echo } from '../../plugins/echo/index.ts'
import { seccompPolicy } from '../../plugins/nsjail/jail/seccomp.ts'
import type { Backend, Plugin } from '../../src/plugin-api/index.ts'
import type { SubjectSandbox } from '../../src/selftest/subject.ts'
import { killTheProcessAlone, limitHardly, shareOne, startWithoutMark, withEach } from './weak-backends.ts'

const root = join(import.meta.dir, '../..')
const realNsjail = join(root, '.cache/nsjail/bin/nsjail')

/** A server that does not do one of the things that keep sandboxes apart. */
export interface Weakness {
  /** Lines of nsjail's configuration that begin with the first are written as the second. */
  config?: readonly (readonly [string, string])[]
  /** In place of the backend of this build. */
  change?(backend: Backend): Backend
  /** Parts of the server that its backend is not given. */
  without?: readonly ('answerName' | 'serveDirect')[]
  settings?: readonly string[]
  /** What the sandboxes are made with, unless a probe says so itself. */
  rules?: SubjectSandbox
}

const noFilter = ['seccomp_string:', ''] as const
/** The rules of the filter by which a process cannot change its own mark. */
const rulesOfMarks = [/ *setrlimit\(resource\) .*\n/, /\(pid == 0 && .*?\) \|\| (?=\(pid == 1)/]

const everywhere = ['0.0.0.0/0', '::/0']

export const weaknesses = {
  /** Nothing is weak: everything has to hold here, or the rest proves nothing. */
  none: {},
  'no seccomp': { config: [noFilter] },
  'no seccomp, and the powers of mounts': {
    config: [noFilter, ['cap: "CAP_CHOWN"', 'cap: "CAP_CHOWN" cap: "CAP_SYS_ADMIN"']],
  },
  /** The server redirects no connections: it would redirect those of the host, and of the bait. */
  "the host's network": { config: [['clone_newnet:', 'clone_newnet: false']], without: ['serveDirect'] },
  'a mark that is not set': {
    config: [['seccomp_string:', `seccomp_string: ${JSON.stringify(policyWithoutMarks())}`]],
    change: backend => withEach(backend, startWithoutMark),
  },
  'limits that are not those that were asked for': {
    config: [
      ['mount { dst: "/dev/shm"', 'mount { dst: "/dev/shm" fstype: "tmpfs" options: "size=512m,mode=1777" rw: true }'],
      [
        'mount { dst: "/dev/pts"',
        'mount { dst: "/dev/pts" fstype: "devpts" options: "newinstance,ptmxmode=0666,mode=620,max=512" rw: true }',
      ],
    ],
    change: limitHardly,
  },
  'the root of the machine inside': {
    config: [
      ['uidmap {', 'clone_newuser: false'],
      ['cap: "CAP_CHOWN"', 'cap: "CAP_CHOWN" cap: "CAP_MKNOD"'],
      ['mount { dst: "/proc"', 'mount { dst: "/proc" fstype: "proc" rw: true nosuid: true nodev: true noexec: true }'],
    ],
  },
  'powers over its network': {
    config: [['cap: "CAP_CHOWN"', 'cap: "CAP_CHOWN" cap: "CAP_NET_ADMIN" cap: "CAP_NET_RAW"']],
  },
  "the host's IPC": { config: [['clone_newnet:', 'clone_newnet: true clone_newipc: false']] },
  'rules that allow private ranges': {
    settings: ['--network-private', everywhere.join(',')],
    rules: { networkAllowOut: everywhere },
  },
  'no resolver inside': { without: ['answerName', 'serveDirect'] },
  'one sandbox for all': { change: shareOne },
  'kills that find no tree': { change: backend => withEach(backend, killTheProcessAlone) },
  'a removal that removes nothing': {
    change: backend => withEach(backend, environment => ({ ...environment, destroy: async () => {} })),
  },
} as const satisfies Readonly<Record<string, Weakness>>

/** The plugins of a server with this weakness. `directory`: where its nsjail is put. */
export function weakPlugins({ config, change, without = [] }: Weakness, directory: string): Plugin[] {
  const nsjailPath = config ? weakNsjail(config, directory) : realNsjail
  const made = nsjail({ executable: join(root, 'dist/threadbox'), nsjailPath })
  const backend: Plugin['backend'] = context => {
    const given = { ...context }
    for (const part of without) delete given[part]
    const inner = made.backend?.(given)
    if (!inner) throw new Error('nsjail has a backend')
    return change ? change(inner) : inner
  }
  return [{ name: 'nsjail', backend }, echo]
}

/**
 * A program that changes the configuration that it is given, and becomes nsjail. The server counts its children and moves them: so it must
 * not start any, and nothing but the shell's own words is in it.
 */
function weakNsjail(changes: readonly (readonly [string, string])[], directory: string): string {
  mkdirSync(directory, { recursive: true })
  const path = join(directory, 'nsjail')
  const source = [
    '#!/bin/sh',
    '[ "$1" = --config ] || exec NSJAIL "$@"',
    "text= newline='\n'",
    'while IFS= read -r line; do',
    '  case $line in',
    ...changes.map(([from, to]) => `    '${from}'*) line='${to}' ;;`),
    '  esac',
    '  text=$text$line$newline',
    'done <"$2"',
    'printf %s "$text" >"$2"',
    'exec NSJAIL "$@"',
  ]
  writeFileSync(path, `${source.join('\n')}\n`.replaceAll('NSJAIL', realNsjail))
  chmodSync(path, 0o755)
  return path
}

function policyWithoutMarks(): string {
  return rulesOfMarks.reduce((policy, rule) => {
    if (!rule.test(policy)) throw new Error(`the filter has no ${rule}`)
    return policy.replace(rule, '')
  }, seccompPolicy)
}
