import type { Programs } from './program.ts'

/** The areas whose probes run a program inside, each loaded when it is tried. */
export const areas: Readonly<Record<string, () => Promise<Programs>>> = {
  mounts: async () => (await import('./mounts.ts')).mounts,
}
