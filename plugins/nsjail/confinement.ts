import type { Limits } from '../../src/plugin-api/index.ts'
import type { Host } from './host/layout.ts'
import type { EnvironmentRecord } from './host/record.ts'
import { getFirstId, IDS_PER_JAIL } from './host/user-ids.ts'
import type { Controller } from './jail/cgroup.ts'

/** Lines for the operator on what confines an environment and what could not be limited. */
export function describeConfinement(
  host: Host,
  record: EnvironmentRecord,
  { limited, onlyProxy }: { limited: readonly Controller[]; onlyProxy: string | undefined },
): string[] {
  return [
    `isolation: own namespaces, seccomp, few capabilities, ${identity(host, record)}`,
    network(onlyProxy),
    memory(record.limits, limited),
    processes(record.limits, limited),
    cpu(record.limits, limited),
    disk(record),
  ]
}

function identity(host: Host, { userIdRange }: EnvironmentRecord): string {
  if (userIdRange === undefined) return `user id ${host.uid} of the server, shared by all its sandboxes`
  const first = getFirstId(userIdRange)
  return `its own user ids ${first} to ${first + IDS_PER_JAIL - 1}`
}

const network = (onlyProxy: string | undefined): string =>
  onlyProxy === undefined
    ? 'network: loopback; TCP to anywhere leads to the server, which decides, and so does its proxy'
    : `network: loopback, and the server's proxy; TCP leads nowhere else: ${onlyProxy}`

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

function disk({ limits: { diskMb }, hasImage }: EnvironmentRecord): string {
  if (diskMb === undefined) return 'disk: no limit was asked for'
  if (hasImage) return `disk: ${diskMb} MB`
  return `disk: ${diskMb} MB by watching, no disk image can be mounted: more is noticed and stopped a few seconds late`
}
