import type { HarnessV1NetworkSandboxSession, HarnessV1RequestTransformation } from '@ai-sdk/harness'
import { isCode } from '../error.ts'
import type { Server } from '../server.ts'
import { type Binding, toBindings } from './bindings.ts'
import type { Place } from './place.ts'

type Transformations = Required<
  Pick<HarnessV1NetworkSandboxSession, 'setRequestTransformations' | 'addRequestTransformations'>
>

/** What the names of secrets begin with that this package makes. */
const PREFIX = 'ai-sdk.'
/** A secret that nothing binds for so long was left behind by a process that died, or by a sandbox that went by itself. */
const LEFT_BEHIND_MS = 60 * 60_000
/** Harnesses add one with a placeholder of its own each time they are started, and the server takes a hundred. */
const MAX_FORMER = 50

const prefixOf = ({ id }: Place) => `${PREFIX}${id}.`

/**
 * Transformations of requests by secrets of the team, each bound to this sandbox alone: the server puts their values into requests after
 * they have left the sandbox. Other bindings of the sandbox, as its agent's, stay.
 */
export function createTransformations(place: Place): Transformations {
  const { server, path } = place
  let last: Promise<void> = Promise.resolve()

  const change = async (transformations: readonly HarnessV1RequestTransformation[], isAddition: boolean) => {
    const wanted = toBindings(transformations)
    const names = new Map<string, string>()
    for (const { value } of wanted) names.set(value, names.get(value) ?? `${prefixOf(place)}${crypto.randomUUID()}`)
    const { secrets: before } = await server.json<{ secrets: Binding[] | null }>('GET', path)
    const isOwn = (binding: Binding) => binding.secret.startsWith(prefixOf(place))
    // The same header of the same requests has one value.
    const isLeft = (binding: Binding) => isAddition && !wanted.some(each => isSamePlace(each.binding, binding))
    const own = (before ?? []).filter(binding => isOwn(binding) && isLeft(binding)).slice(-MAX_FORMER)
    const kept = [...(before ?? []).filter(binding => !isOwn(binding)), ...own]
    const made = wanted.map(({ value, binding }) => ({ secret: names.get(value), ...binding }))
    try {
      for (const [value, name] of names) await server.request('PUT', secretPath(name), { body: { value } })
      await server.request('PATCH', path, { body: { secrets: [...kept, ...made] } })
    } catch (error) {
      for (const name of names.values()) await remove(server, name)
      throw error
    }
    const stillBound = new Set(kept.map(({ secret }) => secret))
    const gone = new Set((before ?? []).map(({ secret }) => secret).filter(secret => !stillBound.has(secret)))
    if (gone.size > 0) await removeUnused(server, name => gone.has(name) && name.startsWith(prefixOf(place)))
  }
  /** One after the other: each begins with what the one before has left. */
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    const done = last.then(work)
    last = done.catch(() => {})
    return done
  }

  return {
    setRequestTransformations: transformations => inTurn(() => change(transformations, false)),
    addRequestTransformations: transformations => inTurn(() => change(transformations, true)),
  }
}

/** Removes the secrets that were made for a sandbox that is gone. */
export const forgetTransformations = (place: Place): Promise<void> =>
  removeUnused(place.server, name => name.startsWith(prefixOf(place)))

/** Whether the key may bind secrets. */
export async function mayBind(server: Server, signal?: AbortSignal): Promise<boolean> {
  try {
    const { scopes } = await server.json<{ scopes: string[] | null }>('GET', '/me', { signal })
    return scopes === null || ['secrets', 'admin'].some(scope => scopes.includes(scope))
  } catch (error) {
    if (isCode(error, 'forbidden')) return false
    throw error
  }
}

const secretPath = (name: string) => `/secrets/${encodeURIComponent(name)}`

interface Listed {
  name: string
  updatedAt: string
  agents: string[]
  sandboxes: number
}

async function removeUnused(server: Server, isOver: (name: string) => boolean): Promise<void> {
  const { secrets } = await server.json<{ secrets: Listed[] }>('GET', '/secrets')
  for (const { name, updatedAt, agents, sandboxes } of secrets) {
    const isUsed = agents.length > 0 || sandboxes > 0
    if (!name.startsWith(PREFIX) || isUsed) continue
    if (isOver(name) || Date.now() - Date.parse(updatedAt) > LEFT_BEHIND_MS) await remove(server, name)
  }
}

async function remove(server: Server, name: string): Promise<void> {
  try {
    await server.request('DELETE', secretPath(name))
  } catch (error) {
    if (!isCode(error, 'not_found')) throw error
  }
}

const isSamePlace = (one: Omit<Binding, 'secret'>, other: Binding): boolean => placeOf(one) === placeOf(other)

const placeOf = ({ hosts, as, methods, paths, when }: Omit<Binding, 'secret'>): string =>
  JSON.stringify([hosts, as.header, methods, paths, when])
