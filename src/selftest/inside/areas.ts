import type { Programs } from './program.ts'

/** The areas whose probes run a program inside, each loaded when it is tried. */
export const areas: Readonly<Record<string, () => Promise<Programs>>> = {
  'system-calls': async () => (await import('./system-calls.ts')).systemCalls,
  namespaces: async () => (await import('./namespaces.ts')).namespaces,
  mounts: async () => (await import('./mounts.ts')).mounts,
  proc: async () => (await import('./proc.ts')).proc,
  devices: async () => (await import('./devices.ts')).devices,
  guest: async () => (await import('./guest.ts')).guest,
  'host-files': async () => (await import('./host-files.ts')).hostFiles,
  limits: async () => (await import('./limits.ts')).limits,
  egress: async () => (await import('./egress.ts')).egress,
  files: async () => (await import('./files.ts')).files,
  neighbours: async () => (await import('./neighbours.ts')).neighbours,
}
