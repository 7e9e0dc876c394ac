import type { CreatedWith } from './labels.ts'
import { isolationOf } from './runtime.ts'

/** Lines for the operator on what confines an environment and what could not be limited. */
export function describeConfinement(
  { image, limits, runtime, hasQuota, hasSeccomp, hasVolumes, unlimited }: CreatedWith,
  onlyProxy: string | undefined,
): string[] {
  const { memoryMb, processes, cpus, diskMb } = limits
  const limit = (name: keyof typeof limits, what: string, value: string | undefined) => {
    if (value === undefined) return `${what}: no limit was asked for`
    return unlimited.includes(name) ? `${what}: not limited, the engine cannot` : `${what}: ${value}`
  }
  return [
    `isolation: container of ${image}${kernelOf(runtime)}, seccomp, few capabilities, no new privileges`,
    network(onlyProxy),
    limit('memoryMb', 'memory', memoryMb === undefined ? undefined : `${memoryMb} MB`),
    limit('processes', 'processes', processes === undefined ? undefined : `${processes}`),
    limit('cpus', 'cpu', cpus === undefined ? undefined : `${cpus} cores`),
    disk(diskMb, hasQuota),
    ...(hasSeccomp
      ? []
      : ["seccomp: the engine's own profile, under which a process can hide from the kill of its tree"]),
    ...(hasVolumes ? ["the image's own volumes are not held by the disk limit"] : []),
  ]
}

const network = (onlyProxy: string | undefined): string =>
  onlyProxy === undefined
    ? 'network: loopback; TCP to anywhere leads to the server, which decides, and so does its proxy'
    : `network: loopback, and the server's proxy; TCP leads nowhere else: ${onlyProxy}`

function kernelOf(runtime: string | undefined): string {
  if (runtime === undefined) return ''
  return isolationOf(runtime) === 'gvisor' ? ` on gVisor's kernel (${runtime})` : ` by ${runtime}`
}

function disk(diskMb: number | undefined, hasQuota: boolean): string {
  if (diskMb === undefined) return 'disk: no limit was asked for'
  if (hasQuota) return `disk: ${diskMb} MB`
  return `disk: ${diskMb} MB by watching, the engine's storage has no quota: more is noticed and stopped a few seconds late, deleted files that are open never`
}
