import type { SecretBinding, SecretPlace } from '../../model/secret.ts'
import { matchesName, parseRule } from '../rules.ts'

const HTTPS_PORT = 443
export const SSH_PORT = 22

/** A secret that a sandbox may use at some hosts. */
export interface BoundSecret {
  /** The name of the secret, which the journal shows. */
  name: string
  /** Domains as in network rules, each with ports, or without for port 443. */
  hosts: readonly string[]
  as: SecretPlace
  /** HTTP methods in capital letters; absent for all. */
  methods?: readonly string[]
  /** Patterns such as `/repos/**`; absent for all paths. */
  paths?: readonly string[]
  /** The conditions that a request must meet besides its target. */
  when?: SecretBinding['when']
  /** The text that programs find in the variable, for `{env}`. */
  placeholder?: string
  /** Decrypts the value for use at once; it must not be kept. Throws when it was removed or cannot be decrypted. */
  value(): string
}

/** One use of a secret, without any part of its value. */
export interface SecretUse {
  /** The name of the secret. */
  name: string
  host: string
  port: number
  method: string
  /** The path without its query. */
  path: string
}

/**
 * Finds the secrets that may be sent to a name and port within HTTP. None may be sent to a host that was reached by its address.
 */
export const bindingsFor = (bound: readonly BoundSecret[], name: string, port: number): BoundSecret[] =>
  bound.filter(({ as, hosts }) => !('ssh' in as) && hosts.some(host => isHost(host, name, port, HTTPS_PORT)))

/** Finds the keys with which SSH logins at a name and port may be signed. */
export const keysFor = (bound: readonly BoundSecret[], name: string, port: number): BoundSecret[] =>
  bound.filter(({ as, hosts }) => 'ssh' in as && hosts.some(host => isHost(host, name, port, SSH_PORT)))

function isHost(host: string, name: string, port: number, usual: number): boolean {
  const rule = parseRule(host)
  return matchesName(rule.ports ? rule : { ...rule, ports: { from: usual, to: usual } }, name, port)
}
