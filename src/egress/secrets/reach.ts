import type { Header } from '../../http1/head.ts'
import type { FieldMatch, TextMatch } from '../../model/secret.ts'
import type { BoundSecret } from './binding.ts'

/** Headers that make some servers treat a request as one with another method or path. */
const overriding = new Set([
  ...['x-http-method-override', 'x-http-method', 'x-method-override'],
  ...['x-original-url', 'x-rewrite-url', 'x-original-uri', 'x-original-method', 'x-override-url'],
])

/** How often a path is decoded. A path that is encoded more often gets no secret that is bound to paths. */
const MAX_DECODINGS = 4

interface Asked {
  method: string
  /** The path with the query. */
  path: string
  headers: readonly Header[]
}

/** Whether a secret may go with a request: by its methods and paths, however a server reads the path, and by what the request has. */
export function mayGo(
  { methods, paths, when }: Pick<BoundSecret, 'methods' | 'paths' | 'when'>,
  { method, path, headers }: Asked,
): boolean {
  // A server that obeys TRACE repeats the request. A fragment is read as part of the path, or not at all.
  if (/^(TRACE|TRACK|CONNECT)$/i.test(method) || path.includes('#')) return false
  if (when && !meets(when, path, headers)) return false
  if (!methods && !paths) return true
  // Servers that use CGI's variables read an underscore as a hyphen.
  if (headers.some(([name]) => overriding.has(name.replaceAll('_', '-')))) return false
  if (methods && hasMethodParameter(path)) return false
  if (methods && !methods.includes(method)) return false
  if (!paths) return true
  const readings = readingsOf(path.split('?', 1)[0] ?? '')
  return readings !== undefined && paths.some(pattern => readings.every(reading => matchesPath(pattern, reading)))
}

/** Whether each thing that is asked for is there. Names of headers count in small letters. */
function meets({ headers = [], query = [] }: NonNullable<BoundSecret['when']>, path: string, has: readonly Header[]) {
  const parameters = [...new URLSearchParams(path.split('?').slice(1).join('?'))]
  return (
    headers.every(({ name, value }) => has.some(header => isField({ name: name && inSmall(name), value }, header))) &&
    query.every(match => parameters.some(parameter => isField(match, parameter)))
  )
}

const isField = (
  match: { [part in keyof FieldMatch]: TextMatch | undefined },
  [name, value]: readonly [string, string],
) => isText(match.name, name) && isText(match.value, value)

const isText = (match: TextMatch | undefined, text: string): boolean =>
  !match || ('exact' in match ? text === match.exact : text.startsWith(match.startsWith))

const inSmall = (match: TextMatch): TextMatch =>
  'exact' in match ? { exact: match.exact.toLowerCase() } : { startsWith: match.startsWith.toLowerCase() }

/** Whether the query has `_method`, which some frameworks obey. */
function hasMethodParameter(path: string): boolean {
  const query = path.split('?').slice(1).join('?').replaceAll(';', '&')
  return new URLSearchParams(query).keys().some(name => /^_method(?:\[|$)/i.test(name.trim()))
}

/**
 * All paths that servers may read from one: decoded once segment by segment, and decoded as a whole as often as possible.
 * Undefined for a path that some server would resolve to another: one with `..`, empty segments or a backslash.
 */
function readingsOf(path: string): string[] | undefined {
  if (!path.startsWith('/') || !isPlain(path)) return undefined
  const readings: string[] = []
  for (let now = path; readings.length <= MAX_DECODINGS; ) {
    let decoded: string
    try {
      decoded = decodeURIComponent(now)
    } catch {
      return undefined
    }
    if (!isPlain(decoded)) return undefined
    // Encoded slashes stay within their segment, so that the pattern's segments are compared with the path's.
    if (readings.length === 0) readings.push(decodeURIComponent(path.replace(/%2f/gi, '\u0000')))
    readings.push(decoded)
    if (decoded === now || !decoded.includes('%')) return readings
    now = decoded
  }
  return undefined
}

function isPlain(path: string): boolean {
  const segments = path.split('/').slice(1)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for.
  if (/[\\\u0000-\u001f\u007f]/.test(path)) return false
  return segments.every((segment, at) => {
    const bare = segment.split(';', 1)[0] ?? ''
    return !/^\.{1,2}$/.test(bare) && (bare !== '' || (segment === '' && at === segments.length - 1))
  })
}

/**
 * Matches a path. `*` stands for any text within a segment, `**` for any text. Takes time in proportion to the product of both
 * lengths at most.
 */
export function matchesPath(pattern: string, path: string): boolean {
  let reached = new Uint8Array(path.length + 1)
  reached[0] = 1
  for (let at = 0; at < pattern.length; at++) {
    const next = new Uint8Array(path.length + 1)
    if (pattern[at] === '*') {
      const isDeep = pattern[at + 1] === '*'
      if (isDeep) at++
      for (let end = 0; end <= path.length; end++) {
        const goesOn = end > 0 && next[end - 1] === 1 && (isDeep || path[end - 1] !== '/')
        next[end] = reached[end] === 1 || goesOn ? 1 : 0
      }
    } else {
      for (let end = 1; end <= path.length; end++) {
        if (reached[end - 1] === 1 && path[end - 1] === pattern[at]) next[end] = 1
      }
    }
    reached = next
  }
  return reached[path.length] === 1
}
