import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nsjail } from 'nsjail-wrapper'
import { echo } from '../../plugins/echo/index.ts'
import type { Backend, Environment, Plugin } from '../../src/plugin-api/index.ts'
import type { SubjectSandbox } from '../../src/selftest/subject.ts'

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

const everywhere = ['0.0.0.0/0', '::/0']

export const weaknesses = {
  /** Nothing is weak: everything has to hold here, or the rest proves nothing. */
  none: {},
  'no seccomp': { config: [['seccomp_string:', '']] },
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

/** A backend whose every environment is changed, made or found. */
function withEach(backend: Backend, change: (environment: Environment) => Environment): Backend {
  return {
    ...backend,
    create: async spec => change(await backend.create(spec)),
    async open(id) {
      const found = await backend.open(id)
      return found && change(found)
    },
  }
}

/** Gives the first environment to everybody. */
function shareOne(backend: Backend): Backend {
  let first: Promise<Environment> | undefined
  const ids = new Set<string>()
  const as = async (id: string): Promise<Environment> => ({
    ...(await first!),
    id,
    destroy: async () => void ids.delete(id),
  })
  return {
    ...backend,
    create(spec) {
      first ??= backend.create(spec)
      ids.add(spec.id)
      return as(spec.id)
    },
    open: async id => (ids.has(id) ? await as(id) : undefined),
  }
}

/** Ends a command's own process, and nothing that it has started. */
function killTheProcessAlone(environment: Environment): Environment {
  const { processes } = environment
  return {
    ...environment,
    async spawn({ signal, ...options }) {
      const child = await environment.spawn(options)
      const kill = () => child.kill('SIGTERM')
      signal?.addEventListener('abort', kill)
      if (signal?.aborted) kill()
      return { ...child, kill }
    },
    ...(processes && {
      processes: { ...processes, remove: async (pid: number) => processes.signal(pid, 'SIGTERM').catch(() => {}) },
    }),
  }
}
