import type { Limits } from '../../src/plugin-api/index.ts'
import type { Ground } from './host/layout.ts'
import type { Meta } from './host/record.ts'
import { firstIdOf, IDS_PER_JAIL } from './host/user-ids.ts'
import type { Controller } from './jail/cgroup.ts'

/** What confines an environment, and what could not be limited, each in a line for the operator. */
export function describeConfinement(ground: Ground, meta: Meta, limited: readonly Controller[]): string[] {
  return [
    `isolation: own namespaces, seccomp, few capabilities, ${identity(ground, meta)}`,
    "network: loopback, and the server's proxy",
    memory(meta.limits, limited),
    processes(meta.limits, limited),
    cpu(meta.limits, limited),
    disk(meta),
  ]
}

function identity(ground: Ground, { slot }: Meta): string {
  if (slot === undefined) return `user id ${ground.uid} of the server, shared by all its sandboxes`
  const first = firstIdOf(slot)
  return `its own user ids ${first} to ${first + IDS_PER_JAIL - 1}`
}

function memory({ memoryMb }: Limits, limited: readonly Controller[]): string {
  if (memoryMb === undefined) return 'memory: no limit was asked for'
  return limited.includes('memory') ? `memory: ${memoryMb} MB` : 'memory: not limited, no memory cgroup can be written'
}

function processes({ processes: count }: Limits, limited: readonly Controller[]): string {
  if (count === undefined) return 'processes: no limit was asked for'
  if (limited.includes('pids')) return `processes: ${count}`
  return `processes: ${count} for each user inside, no pids cgroup can be written`
}

function cpu({ cpus }: Limits, limited: readonly Controller[]): string {
  if (cpus === undefined) return 'cpu: no limit was asked for'
  return limited.includes('cpu') ? `cpu: ${cpus} cores` : 'cpu: not limited, no cpu cgroup can be written'
}

function disk({ limits: { diskMb }, image }: Meta): string {
  if (diskMb === undefined) return 'disk: no limit was asked for'
  if (image) return `disk: ${diskMb} MB`
  return `disk: ${diskMb} MB by watching, no disk image can be mounted: more is noticed and stopped a few seconds late`
}
