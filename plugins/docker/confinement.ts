import type { CreatedWith } from './labels.ts'

/** Lines for the operator on what confines an environment and what could not be limited. */
export function describeConfinement({
  image,
  limits,
  hasQuota,
  hasSeccomp,
  hasVolumes,
  unlimited,
}: CreatedWith): string[] {
  const { memoryMb, processes, cpus, diskMb } = limits
  const limit = (name: keyof typeof limits, what: string, value: string | undefined) => {
    if (value === undefined) return `${what}: no limit was asked for`
    return unlimited.includes(name) ? `${what}: not limited, the engine cannot` : `${what}: ${value}`
  }
  return [
    `isolation: container of ${image}, seccomp, few capabilities, no new privileges`,
    "network: loopback, and the server's proxy",
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

function disk(diskMb: number | undefined, hasQuota: boolean): string {
  if (diskMb === undefined) return 'disk: no limit was asked for'
  if (hasQuota) return `disk: ${diskMb} MB`
  return `disk: ${diskMb} MB by watching, the engine's storage has no quota: more is noticed and stopped a few seconds late, deleted files that are open never`
}
