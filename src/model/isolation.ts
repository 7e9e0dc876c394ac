import type { Backend, Isolation } from '../plugin-api/index.ts'

/** The classes of isolation, weakest first. */
export const isolations = ['namespaces', 'container', 'gvisor', 'microvm'] as const satisfies readonly Isolation[]

/** Whether a value is the name of a class of isolation. */
export const isIsolation = (value: unknown): value is Isolation => isolations.some(each => each === value)

export const isAtLeast = (isolation: Isolation, least: Isolation): boolean =>
  isolations.indexOf(isolation) >= isolations.indexOf(least)

/** The strongest class; undefined when none is given. */
export const strongestOf = (...asked: readonly (Isolation | undefined)[]): Isolation | undefined =>
  isolations.findLast(each => asked.includes(each))

/** The classes that environments of a backend can have: first that of one that asks for nothing, then stronger ones. */
export const classesOf = (backend: Pick<Backend, 'isolation' | 'isolationOf'>): Isolation[] => {
  const asked = isolations.map(isolation => backend.isolationOf?.({ isolation }) ?? backend.isolation)
  return [...new Set([backend.isolation, ...asked])]
}
