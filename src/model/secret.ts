/**
 * The place of a secret in a request. In a header's format, `{}` stands for the value; without a format the value is the whole
 * header.
 */
export type SecretPlace =
  | { header: string; format?: string }
  | { basic: { user: string } }
  | { query: string }
  /** A variable in which programs find a placeholder. The server replaces the placeholder in what they send. */
  | { env: string }
  /**
   * A private key with which an SSH agent inside signs logins. `hostKeys` are texts such as `ssh-ed25519 AAAA…`; without them any
   * key of the host is accepted.
   */
  | { ssh: { user: string; hostKeys?: readonly string[] } }

/** A text that is this one, or begins so. */
export type TextMatch = { exact: string } | { startsWith: string }

/** A header or a parameter of a query, by its name, its value, or both. */
export interface FieldMatch {
  name?: TextMatch
  value?: TextMatch
}

/** Says which secret of the team is used at which hosts, and how. */
export interface SecretBinding {
  secret: string
  /** Names such as `github.com` and `*.github.com`, each with `:port`, `:from-to`, or for port 443 neither. Never an address. */
  hosts: readonly string[]
  as: SecretPlace
  /** HTTP methods in capital letters; absent for all. */
  methods?: readonly string[]
  /** Patterns such as `/repos/**`, where `*` stands for any text within a segment and `**` for any text; absent for all paths. */
  paths?: readonly string[]
  /** Each of these must be met by a header or parameter of the request. */
  when?: { headers?: readonly FieldMatch[]; query?: readonly FieldMatch[] }
}

/** A sandbox's own binding. */
export interface KeptBinding extends SecretBinding {
  /** The text that programs of this sandbox find in the variable, for `{env}`. */
  placeholder?: string
}

/** The placeholders of bindings to variables, by the variable. */
export const placeholdersOf = (bindings: readonly Pick<KeptBinding, 'as' | 'placeholder'>[]): Record<string, string> =>
  Object.fromEntries(
    bindings.flatMap(({ as, placeholder }) =>
      'env' in as && placeholder !== undefined ? [[as.env, placeholder] as const] : [],
    ),
  )

/** A secret of a team, without its value. */
export interface Secret {
  id: string
  teamId: string
  name: string
  createdAt: string
  /** When the present value was stored. */
  updatedAt: string
}
