import { type Static, Type } from '@sinclair/typebox'
import { bounds, excerpt } from '../../bounds.ts'
import { parseRule } from '../../egress/rules.ts'
import { readPrivateKey } from '../../egress/ssh/private-key.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { FieldMatch, SecretBinding, SecretPlace, TextMatch } from '../../model/secret.ts'

/** The bindings that agents and creates may have. */

/** What the name of a secret must be. */
export const SECRET_NAME = 'must begin with a letter or digit, and have letters, digits and -_. alone'

export const SecretName = Type.String({
  pattern: `^[A-Za-z0-9][A-Za-z0-9_.-]{0,${bounds.secretName - 1}}$`,
  errorMessage: SECRET_NAME,
})

const exact = { additionalProperties: false } as const

const Place = Type.Object(
  {
    header: Type.Optional(Type.String({ maxLength: bounds.name })),
    format: Type.Optional(Type.String({ maxLength: bounds.name, description: 'Of the header: `{}` is the value.' })),
    basic: Type.Optional(Type.Object({ user: Type.String({ maxLength: bounds.name }) }, exact)),
    query: Type.Optional(Type.String({ maxLength: bounds.name })),
    env: Type.Optional(Type.String({ maxLength: bounds.variableName })),
    ssh: Type.Optional(
      Type.Object(
        {
          user: Type.String({ minLength: 1, maxLength: bounds.name }),
          hostKeys: Type.Optional(
            Type.Array(
              Type.String({
                pattern: '^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/]{1,4000}={0,2}$',
                errorMessage: 'must be a public key, as `ssh-ed25519 AAAA…`',
              }),
              { minItems: 1, maxItems: bounds.bindingHosts, description: 'Of the hosts. Any unless given.' },
            ),
          ),
        },
        { ...exact, description: 'The secret is a private key, which an SSH agent signs logins of this user with.' },
      ),
    ),
  },
  { ...exact, description: 'One of `header` (with or without `format`), `basic`, `query`, `env` and `ssh`.' },
)

const Text = Type.Object(
  {
    exact: Type.Optional(Type.String({ maxLength: bounds.matchedText })),
    startsWith: Type.Optional(Type.String({ maxLength: bounds.matchedText })),
  },
  { ...exact, minProperties: 1, maxProperties: 1, description: 'One of `exact` and `startsWith`.' },
)

const Fields = Type.Array(
  Type.Object({ name: Type.Optional(Text), value: Type.Optional(Text) }, { ...exact, minProperties: 1 }),
  { minItems: 1, maxItems: bounds.bindingPaths },
)

export const Bindings = Type.Array(
  Type.Object(
    {
      secret: SecretName,
      hosts: Type.Array(Type.String({ minLength: 1, maxLength: bounds.networkRule }), {
        minItems: 1,
        maxItems: bounds.bindingHosts,
        description: 'Domains (`*.example.com`), each with or without ports; port 443 without, and 22 for `ssh`.',
      }),
      as: Place,
      methods: Type.Optional(
        Type.Array(Type.String({ pattern: '^[A-Z]{1,20}$', errorMessage: 'must be a method in capital letters' }), {
          minItems: 1,
          maxItems: bounds.bindingPaths,
        }),
      ),
      paths: Type.Optional(
        Type.Array(
          Type.String({
            pattern: '^/[\\x21\\x22\\x24-\\x3e\\x40-\\x7e]{0,999}$',
            errorMessage: 'must begin with /, and have printable ASCII without ? and #',
          }),
          { minItems: 1, maxItems: bounds.bindingPaths, description: 'As `/repos/**`.' },
        ),
      ),
      when: Type.Optional(
        Type.Object(
          { headers: Type.Optional(Fields), query: Type.Optional(Fields) },
          {
            ...exact,
            description: 'What a request must have: for each of these a header, or a parameter of its query.',
          },
        ),
      ),
    },
    exact,
  ),
  { maxItems: bounds.bindings, description: 'Secrets that programs use at some hosts without having them.' },
)

/** Bindings as a caller sends them, before they are checked. */
export type GivenBindings = Static<typeof Bindings>

/** Reads bindings. Throws invalid_request that names the field and what is wrong with the first that is wrong. */
export function readBindings(field: string, given: GivenBindings = []): SecretBinding[] {
  const bindings = given.map((binding, index) => {
    const wrong = (where: string, what: string) =>
      new ApiError('invalid_request', `${field}.${index}.${where}: ${what}`, { field })
    for (const [at, host] of binding.hosts.entries()) {
      const fault = faultOfHost(host)
      if (fault) throw wrong(`hosts.${at}`, fault)
    }
    const as = toPlace(binding.as)
    if (typeof as === 'string') throw wrong('as', as)
    const { secret, hosts, methods, paths } = binding
    const when = binding.when && toWhen(binding.when)
    if ('ssh' in as && (methods || paths || when)) throw wrong('as', 'ssh has no methods, paths and when')
    return { secret, hosts, as, ...(methods && { methods }), ...(paths && { paths }), ...(when && { when }) }
  })
  if (JSON.stringify(bindings).length > bounds.bindingsChars) {
    const text = `${field}: must have no more than ${bounds.bindingsChars} characters as JSON`
    throw new ApiError('invalid_request', text, { field })
  }
  const variables = new Map<string, string>()
  for (const { secret, as } of bindings) {
    if (!('env' in as)) continue
    const other = variables.get(as.env) ?? secret
    if (other !== secret)
      throw new ApiError('invalid_request', `${field}: ${as.env} is for ${other} and for ${secret}`, { field })
    variables.set(as.env, secret)
  }
  return bindings
}

function toWhen({ headers, query }: NonNullable<GivenBindings[number]['when']>): SecretBinding['when'] {
  const toFields = (fields: Static<typeof Fields>): FieldMatch[] =>
    fields.map(({ name, value }) => ({ ...(name && { name: toText(name) }), ...(value && { value: toText(value) }) }))
  return { ...(headers && { headers: toFields(headers) }), ...(query && { query: toFields(query) }) }
}

const toText = ({ exact, startsWith = '' }: Static<typeof Text>): TextMatch =>
  exact === undefined ? { startsWith } : { exact }

function faultOfHost(text: string): string | undefined {
  try {
    const { domain } = parseRule(text)
    return domain ? undefined : `${JSON.stringify(excerpt(text))} is an address: a secret is for hosts by name`
  } catch (error) {
    return messageOf(error)
  }
}

/** The names of headers that frame a message or say where it is sent. */
const framing = new Set([
  ...['host', 'connection', 'content-length', 'content-type', 'content-encoding', 'content-range', 'transfer-encoding'],
  ...['upgrade', 'te', 'trailer', 'keep-alive', 'expect', 'http2-settings', 'accept-encoding', 'range', 'date', 'via'],
])

const isFraming = (name: string): boolean => framing.has(name) || /^(proxy-|sec-|access-control-)/.test(name)

/** Returns a text that says what is wrong when the place is not valid. */
function toPlace({ header, format, basic, query, env, ssh }: Static<typeof Place>): SecretPlace | string {
  const places: SecretPlace[] = [
    ...(header === undefined ? [] : [{ header: header.toLowerCase(), ...(format !== undefined && { format }) }]),
    ...(basic ? [{ basic }] : []),
    ...(query === undefined ? [] : [{ query }]),
    ...(env === undefined ? [] : [{ env }]),
    ...(ssh ? [{ ssh }] : []),
  ]
  const [place] = places
  if (!place || places.length > 1) return 'must have one of header, basic, query, env and ssh'
  if (format !== undefined && header === undefined) return 'format goes with header alone'
  return faultOfPlace(place) ?? place
}

function faultOfPlace(as: SecretPlace): string | undefined {
  if ('header' in as) {
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]{1,200}$/.test(as.header)) return 'header: must be the name of a header'
    if (isFraming(as.header)) return `header: ${as.header} says how HTTP is sent, and cannot carry a secret`
    if (as.format === undefined) return undefined
    if (as.format.split('{}').length !== 2) return 'format: must have {} once, for the value'
    return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(as.format)
      ? undefined
      : 'format: must be printable ASCII, without spaces around it'
  }
  if ('basic' in as) return /^[^:\p{Cc}]*$/u.test(as.basic.user) ? undefined : 'basic.user: must have no colon'
  if ('query' in as) return /^[^\p{Cc}]+$/u.test(as.query) ? undefined : 'query: must be the name of a parameter'
  if ('ssh' in as) return /^\P{Cc}+$/u.test(as.ssh.user) ? undefined : 'ssh.user: must be the name of a user'
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(as.env) ? undefined : 'env: must be the name of a variable'
}

/** Explains why a value cannot stand in this place; undefined when it can. The text reveals nothing of the value. */
export function findMisfit(as: SecretPlace, value: string): string | undefined {
  if ('basic' in as) return /^[^\p{Cc}]+$/u.test(value) ? undefined : 'it has a line end or another control character'
  if ('query' in as) return undefined
  if ('ssh' in as) return faultOfKey(value)
  return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value) ? undefined : 'it is not one line of printable ASCII'
}

function faultOfKey(value: string): string | undefined {
  try {
    readPrivateKey(value)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}
