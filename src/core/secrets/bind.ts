import { isDeepStrictEqual } from 'node:util'
import { findSecretValue } from '../../db/secrets.ts'
import { ApiError } from '../../errors.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import { type KeptBinding, placeholdersOf, type SecretBinding } from '../../model/secret.ts'
import type { Caller } from '../access/caller.ts'
import { assertScope } from '../access/scopes.ts'
import type { Runtime } from '../runtime.ts'
import { findMisfit } from './bindings.ts'
import { makePlaceholder } from './placeholder.ts'

/** The secrets that a new sandbox may use, and the variables with their placeholders. */
export interface NewBindings {
  secrets: KeptBinding[]
  /** Variables from the agent's bindings. The request's own variables take precedence. */
  agentVariables: Record<string, string>
  /** Variables from the request's bindings. */
  ownVariables: Record<string, string>
}

/**
 * Makes the bindings of a new sandbox: those of its agent, and those of the request, which replace the agent's for the same
 * place. Throws forbidden for a token or key that may bind nothing; invalid_request or conflict that names a secret which the
 * team does not have or whose value does not fit; and conflict for a backend whose sandboxes reach the network by themselves.
 */
export function bindSecrets(
  { db, backends }: Pick<Runtime, 'db' | 'backends'>,
  caller: Caller,
  backend: string,
  agent: readonly SecretBinding[] = [],
  own: readonly SecretBinding[] = [],
): NewBindings {
  if (own.length > 0) assertMayBind(caller)
  const ofAgent = agent.filter(binding => !own.some(each => isReplaced(binding, each)))
  if (ofAgent.length + own.length > 0 && backends.get(backend)?.egress === 'own') {
    throw new ApiError('conflict', `secrets: sandboxes on ${backend} reach the network by themselves`)
  }
  const placeholders = new Map<string, string>()
  const keep = (isOwn: boolean) => (binding: SecretBinding) => {
    const refused = (what: string) =>
      isOwn
        ? new ApiError('invalid_request', `secrets: ${what}`, { field: 'secrets' })
        : new ApiError('conflict', `The agent binds a secret: ${what}`)
    const { secret, as } = binding
    const value = findSecretValue(db, caller.teamId, secret)
    if (value === undefined) throw refused(`there is no secret ${secret}. Set it first.`)
    const misfit = findMisfit(as, value)
    if (misfit) throw refused(`${secret} does not fit: ${misfit}.`)
    if (!('env' in as)) return binding
    const placeholder = placeholders.get(as.env) ?? makePlaceholder(value)
    placeholders.set(as.env, placeholder)
    return { ...binding, placeholder }
  }
  const [agents, owns] = [ofAgent.map(keep(false)), own.map(keep(true))]
  return { secrets: [...agents, ...owns], agentVariables: placeholdersOf(agents), ownVariables: placeholdersOf(owns) }
}

/**
 * Makes the bindings of a sandbox that is copied from another: the other's, and those of the request, which replace them for the
 * same place. All get new placeholders. In `variables`, which are those of the other sandbox, the new placeholders replace the
 * old ones. Throws as `bindSecrets` does.
 */
export function bindCopy(
  runtime: Pick<Runtime, 'db' | 'backends'>,
  caller: Caller,
  { backend, kept = [], variables, own = [] }: CopiedBindings,
): Pick<NewBindings, 'secrets' | 'ownVariables'> & { variables: Record<string, string> } {
  const { secrets, ownVariables } = bindSecrets(runtime, caller, backend, [], own)
  const renewed = new Map<string, string>()
  const renew = (binding: KeptBinding): KeptBinding => {
    const { secret, placeholder } = binding
    if (placeholder === undefined) return binding
    // When the secret was removed, its old placeholder gives the shape of the new one.
    const fresh =
      renewed.get(placeholder) ?? makePlaceholder(findSecretValue(runtime.db, caller.teamId, secret) ?? placeholder)
    renewed.set(placeholder, fresh)
    return { ...binding, placeholder: fresh }
  }
  const copied = kept.filter(binding => !own.some(each => isReplaced(binding, each))).map(renew)
  return {
    secrets: [...copied, ...secrets],
    ownVariables,
    variables: Object.fromEntries(
      Object.entries(variables).map(([name, value]) => [name, renewed.get(value) ?? value] as const),
    ),
  }
}

export interface Rebinding {
  backend: string
  /** What the sandbox has. */
  former?: readonly KeptBinding[] | undefined
  /** What it is to have in their place. */
  bindings: readonly SecretBinding[]
  envs: Readonly<Record<string, string>>
}

/**
 * Gives a sandbox other bindings, and its variables the placeholders of these. A binding that it has already stays as it is, and a secret
 * keeps its placeholder in the same variable, so that programs which have read it go on. Throws as `bindSecrets` does.
 */
export function rebindSecrets(
  runtime: Pick<Runtime, 'db' | 'backends'>,
  caller: Caller,
  { backend, former = [], bindings, envs }: Rebinding,
): { secrets: KeptBinding[]; envs: Record<string, string> } {
  const keptOf = (binding: SecretBinding) =>
    former.find(({ placeholder: _, ...each }) => isDeepStrictEqual(each, binding))
  const { secrets } = bindSecrets(
    runtime,
    caller,
    backend,
    [],
    bindings.filter(binding => !keptOf(binding)),
  )
  const fresh = secrets.map(binding => {
    const same = former.find(each => each.secret === binding.secret && isDeepStrictEqual(each.as, binding.as))
    return same?.placeholder === undefined ? binding : { ...binding, placeholder: same.placeholder }
  })
  const all = bindings.flatMap(binding => keptOf(binding) ?? fresh.find(each => isSame(each, binding)) ?? [])
  const placeholders = new Set(former.map(({ placeholder }) => placeholder))
  const others = Object.entries(envs).filter(([, value]) => !placeholders.has(value))
  const kept = Object.entries(envs).filter(([, value]) => all.some(({ placeholder }) => placeholder === value))
  return { secrets: all, envs: { ...Object.fromEntries([...others, ...kept]), ...placeholdersOf(fresh) } }
}

const isSame = ({ placeholder: _, ...kept }: KeptBinding, binding: SecretBinding): boolean =>
  isDeepStrictEqual(kept, binding)

export interface CopiedBindings {
  /** The backend of the copy. */
  backend: string
  kept?: readonly KeptBinding[] | undefined
  variables: Readonly<Record<string, string>>
  own?: readonly SecretBinding[]
}

/** Whether both use the same secret at the same place, or set the same variable. */
const isReplaced = (agent: SecretBinding, own: SecretBinding): boolean =>
  'env' in agent.as && 'env' in own.as
    ? agent.as.env === own.as.env
    : agent.secret === own.secret && isDeepStrictEqual(agent.as, own.as)

/** The names of a sandbox's secrets, as the answer to its create lists them. */
export function namesOfSecrets({ network: { secrets = [] } }: Pick<Sandbox, 'network'>): { secrets?: string[] } {
  const names = new Set(secrets.map(({ secret }) => secret))
  return names.size > 0 ? { secrets: [...names].sort() } : {}
}

/**
 * A caller who binds a secret to a host of their own learns it. Throws forbidden for a token, and for a key without the scope.
 */
export function assertMayBind(caller: Caller): void {
  if (caller.token) throw new ApiError('forbidden', 'A token cannot bind secrets: use an API key.')
  assertScope(caller, ['secrets'])
}

/** Throws forbidden when an agent would get a new binding from a caller who may not bind. */
export function assertMayChangeBindings(
  caller: Caller,
  before: readonly SecretBinding[] = [],
  after: readonly SecretBinding[] = [],
): void {
  if (after.some(binding => !before.some(each => isDeepStrictEqual(each, binding)))) assertMayBind(caller)
}
