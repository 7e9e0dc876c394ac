import { COOKIE_PREFIX } from '../../model/prefixes.ts'

// A server in a sandbox must not see the other cookies of this host, which a browser sends too. The prefix tells them apart.

const MAX_COOKIES = 50
const MAX_COOKIE_BYTES = 4096

const kept = /^(expires|max-age)=[\x20-\x3a\x3c-\x7e]*$|^(secure|httponly|samesite=strict|partitioned)$/i

/** The Set-Cookie headers for a browser: limited to the preview's path, and never for a domain. */
export function confineCookies(headers: readonly string[], path: string): string[] {
  return headers.slice(0, MAX_COOKIES).flatMap(header => {
    const [pair = '', ...attributes] = header.split(';').map(part => part.trim())
    const [, name, value] = /^([!#$%&'*+.^_`|~A-Za-z0-9-]+)=([\x21-\x3a\x3c-\x7e]*)$/.exec(pair) ?? []
    if (name === undefined || header.length > MAX_COOKIE_BYTES) return []
    const allowed = attributes.filter(attribute => kept.test(attribute))
    const isStrict = allowed.some(attribute => /^samesite/i.test(attribute))
    return [
      [`${COOKIE_PREFIX}${name}=${value}`, `Path=${path}`, ...allowed, ...(isStrict ? [] : ['SameSite=Lax'])].join(
        '; ',
      ),
    ]
  })
}

/** The cookies of a Cookie header that servers in sandboxes have set; undefined when there are none. */
export function ownCookies(header: string | null): string | undefined {
  const pairs = (header ?? '').split(';').map(pair => pair.trim())
  const own = pairs.filter(pair => pair.startsWith(COOKIE_PREFIX)).map(pair => pair.slice(COOKIE_PREFIX.length))
  return own.length > 0 ? own.join('; ') : undefined
}
