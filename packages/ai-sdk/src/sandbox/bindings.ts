import { HarnessCapabilityUnsupportedError, type HarnessV1RequestTransformation } from '@ai-sdk/harness'
import { PROVIDER_ID } from './provider-id.ts'

type Matchers = NonNullable<HarnessV1RequestTransformation['match']['headers']>
type PathMatcher = NonNullable<HarnessV1RequestTransformation['match']['path']>
type TextMatch = { exact: string } | { startsWith: string }
type FieldMatch = { name?: TextMatch; value?: TextMatch }

/** A binding of a secret, as the server's API has it. */
export interface Binding {
  secret: string
  hosts: readonly string[]
  as: { header?: string; format?: string }
  methods?: readonly string[]
  paths?: readonly string[]
  when?: { headers?: readonly FieldMatch[]; query?: readonly FieldMatch[] }
}

/** A header that is put into requests: where, and the text that is to be a secret. */
export interface HeaderBinding {
  binding: Omit<Binding, 'secret'>
  value: string
}

/** The least that the server takes for a secret: a shorter text would be found everywhere in answers. */
const MIN_SECRET_CHARS = 4

/**
 * The bindings that stand for transformations. Of `Bearer TOKEN` the token alone is the secret, since the server takes secrets out of
 * answers. Throws a HarnessCapabilityUnsupportedError for what the server cannot match or send.
 */
export function toBindings(transformations: readonly HarnessV1RequestTransformation[]): HeaderBinding[] {
  return transformations.flatMap(({ match, transform }) => {
    const when = {
      ...(match.headers && match.headers.length > 0 && { headers: toFields(match.headers) }),
      ...(match.queryString && match.queryString.length > 0 && { query: toFields(match.queryString) }),
    }
    const about = {
      hosts: [match.host],
      ...(match.method && match.method.length > 0 && { methods: match.method.map(each => each.toUpperCase()) }),
      ...(match.path && { paths: [toPath(match.path)] }),
      ...((when.headers || when.query) && { when }),
    }
    return Object.entries(transform.headers).map(([header, text]) => {
      const [, scheme, rest] = /^([A-Za-z][A-Za-z0-9-]*) (\S{4,})$/.exec(text) ?? []
      const value = rest ?? text
      if (value.length < MIN_SECRET_CHARS) {
        throw unsupported(`the value of ${header} has fewer than ${MIN_SECRET_CHARS} characters, and is no secret`)
      }
      const as = { header: header.toLowerCase(), ...(scheme !== undefined && { format: `${scheme} {}` }) }
      return { value, binding: { as, ...about } }
    })
  })
}

function toFields(matchers: Matchers): FieldMatch[] {
  return matchers.flatMap(({ key, value }) => {
    if (!key && !value) return []
    return [{ ...(key && { name: toText(key) }), ...(value && { value: toText(value) }) }]
  })
}

function toText(matcher: TextMatch | { regex: string }): TextMatch {
  if ('regex' in matcher) throw unsupported('regular expressions are not matched; use `exact` or `startsWith`')
  return 'exact' in matcher ? { exact: matcher.exact } : { startsWith: matcher.startsWith }
}

/** The path as the server's pattern, in which an asterisk would be a wildcard. */
function toPath(matcher: PathMatcher): string {
  const text = toText(matcher)
  const path = 'exact' in text ? text.exact : text.startsWith
  if (path.includes('*')) throw unsupported('a path with an asterisk is not matched')
  return 'exact' in text ? path : `${path}**`
}

const unsupported = (what: string) =>
  new HarnessCapabilityUnsupportedError({ message: `Request transformations: ${what}.`, harnessId: PROVIDER_ID })
