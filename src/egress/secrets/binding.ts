import type { SecretBinding, SecretPlace } from '../../model/secret.ts'
import { matchesName, parseRule } from '../rules.ts'

const HTTPS_PORT = 443
export const SSH_PORT = 22

/** A secret that a sandbox may use at some hosts. */
export interface BoundSecret {
  /** Of the secret: shown in the journal. */
  name: string
  /** Domains as in network rules, each with or without ports; port 443 without. */
  hosts: readonly string[]
  as: SecretPlace
  /** In capital letters. All of them unless given. */
  methods?: readonly string[]
  /** `/repos/**`. All paths unless given. */
  paths?: readonly string[]
  /** What a request must have beside. */
  when?: SecretBinding['when']
  /** What programs find in the variable, for `{env}`. */
  placeholder?: string
  /** Decrypts the value, for use at once: it is not to be kept. Throws when it was removed or cannot be decrypted. */
  value(): string
}

/** One use of a secret, without anything of its value. */
export interface SecretUse {
  /** Of the secret. */
  name: string
  host: string
  port: number
  method: string
  /** Without its query. */
  path: string
}

/** Finds the secrets that a name and port may get within HTTP. A host that was reached by its address has none. */
export const bindingsFor = (bound: readonly BoundSecret[], name: string, port: number): BoundSecret[] =>
  bound.filter(({ as, hosts }) => !('ssh' in as) && hosts.some(host => isHost(host, name, port, HTTPS_PORT)))

/** Finds the keys that logins by SSH at a name and port may be signed with. */
export const keysFor = (bound: readonly BoundSecret[], name: string, port: number): BoundSecret[] =>
  bound.filter(({ as, hosts }) => 'ssh' in as && hosts.some(host => isHost(host, name, port, SSH_PORT)))

function isHost(host: string, name: string, port: number, usual: number): boolean {
  const rule = parseRule(host)
  return matchesName(rule.ports ? rule : { ...rule, ports: { from: usual, to: usual } }, name, port)
}
