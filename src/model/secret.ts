/** Where a secret goes in a request. Of a header's format, `{}` is the value's place; without one it is the whole header. */
export type SecretPlace =
  | { header: string; format?: string }
  | { basic: { user: string } }
  | { query: string }
  /** Programs find a placeholder in this variable, which the server replaces in what they send. */
  | { env: string }
  /** A private key, which an SSH agent inside signs logins with. `hostKeys`: `ssh-ed25519 AAAA…`; any key of the host unless given. */
  | { ssh: { user: string; hostKeys?: readonly string[] } }

/** A text that is this one, or begins so. */
export type TextMatch = { exact: string } | { startsWith: string }

/** A header or a parameter of a query, by its name, its value, or both. */
export interface FieldMatch {
  name?: TextMatch
  value?: TextMatch
}

/** Which secret of the team goes to which hosts, and how. */
export interface SecretBinding {
  secret: string
  /** `github.com`, `*.github.com`, each with `:port` or `:from-to`; port 443 without one. Never an address. */
  hosts: readonly string[]
  as: SecretPlace
  /** Methods of HTTP, in capital letters. All of them unless given. */
  methods?: readonly string[]
  /** `/repos/**`: `*` stands for any text within a segment, `**` for any text. All paths unless given. */
  paths?: readonly string[]
  /** Each of these must be met by a header or parameter of the request. */
  when?: { headers?: readonly FieldMatch[]; query?: readonly FieldMatch[] }
}

/** A binding as a sandbox has it. */
export interface KeptBinding extends SecretBinding {
  /** What programs of this sandbox find in the variable, for `{env}`. */
  placeholder?: string
}

/** A secret of a team, without its value. */
export interface Secret {
  id: string
  teamId: string
  name: string
  createdAt: string
  /** When it got its value. */
  updatedAt: string
}
