import type { Header } from '../../http1/head.ts'
import { HttpError } from '../../http1/http-error.ts'
import type { BoundSecret } from './binding.ts'
import { mayGo } from './reach.ts'

export interface PlainRequest {
  method: string
  /** The path with the query. */
  path: string
  /** Their names are in small letters. */
  headers: readonly Header[]
}

/** A request with its secrets. */
export interface InjectedRequest extends PlainRequest {
  /** The names of the secrets in it. */
  used: Set<string>
  /** The replacements for the body of a form. */
  replacements: readonly Replacement[]
}

export interface Replacement {
  name: string
  placeholder: string
  /** Throws an HttpError when the secret is not there. */
  value(): string
}

/**
 * Puts each secret that may go with this request where its binding says. When two are for the same place, the later one wins.
 * Throws an HttpError for a value that cannot be sent.
 */
export function inject(request: PlainRequest, secrets: readonly BoundSecret[]): InjectedRequest {
  const going = secrets.filter(secret => mayGo(secret, request))
  const used = new Set<string>()
  const replacements = going.flatMap(({ as, name, placeholder, value }): Replacement[] =>
    'env' in as && placeholder ? [{ name, placeholder, value }] : [],
  )
  let { path } = request
  let headers = request.headers.map(header => replacements.reduce((now, each) => inHeader(now, each, used), header))
  for (const each of replacements) path = inQuery(path, each, used)

  for (const { as, name, value } of lastOfEachPlace(going)) {
    used.add(name)
    if ('query' in as) {
      path = withParameter(path, as.query, value())
      continue
    }
    const header = toHeader(as, value)
    if (!header) continue
    if (!fieldValue.test(header[1])) throw new HttpError(502, `the secret ${name} has a line break, and fits no header`)
    headers = [...headers.filter(([each]) => each !== header[0]), header]
  }
  return { method: request.method, path, headers, used, replacements }
}

/** What is bound to a header or a parameter, without what a later binding takes the place of. */
function lastOfEachPlace(secrets: readonly BoundSecret[]): Iterable<BoundSecret> {
  const places = new Map<string, BoundSecret>()
  for (const secret of secrets) {
    const { as } = secret
    if ('query' in as) places.set(`query ${as.query}`, secret)
    else if ('header' in as) places.set(`header ${as.header.toLowerCase()}`, secret)
    else if ('basic' in as) places.set('header authorization', secret)
  }
  return places.values()
}

const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** Turns UTF-8 into text of bytes, in which heads are written. */
const toBytes = (text: string): string => Buffer.from(text).toString('latin1')
const base64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64')

function toHeader(as: BoundSecret['as'], value: () => string): Header | undefined {
  if ('header' in as) {
    return [as.header.toLowerCase(), toBytes((as.format ?? '{}').replaceAll('{}', () => value()))]
  }
  if ('basic' in as) return ['authorization', `Basic ${base64(toBytes(`${as.basic.user}:${value()}`))}`]
  return undefined
}

/** Replaces a placeholder in a header, also within what Basic encodes. */
function inHeader([header, text]: Header, { name, placeholder, value }: Replacement, used: Set<string>): Header {
  const [, scheme = '', encoded = ''] = /^(Basic +)([A-Za-z0-9+/_-]+=*)$/i.exec(text) ?? []
  const decoded = Buffer.from(encoded, 'base64').toString('latin1')
  const isWithin = decoded.includes(placeholder)
  if (!isWithin && !text.includes(placeholder)) return [header, text]
  used.add(name)
  const replaced = (isWithin ? decoded : text).replaceAll(placeholder, () => toBytes(value()))
  const now = isWithin ? scheme + base64(replaced) : replaced
  if (!fieldValue.test(now)) throw new HttpError(502, `the secret ${name} has a line break, and fits no header`)
  return [header, now]
}

function inQuery(path: string, { name, placeholder, value }: Replacement, used: Set<string>): string {
  const at = path.indexOf('?')
  const query = at < 0 ? '' : path.slice(at)
  if (!query.includes(placeholder)) return path
  used.add(name)
  return path.slice(0, at) + query.replaceAll(placeholder, () => encodeURIComponent(value()))
}

/** The path with this parameter once, in place of all of that name. */
function withParameter(path: string, parameter: string, value: string): string {
  const [before = '', ...rest] = path.split('?')
  const others = rest
    .join('?')
    .split('&')
    .filter(each => each !== '' && new URLSearchParams(each).keys().next().value !== parameter)
  return `${before}?${[...others, `${encodeURIComponent(parameter)}=${encodeURIComponent(value)}`].join('&')}`
}

/** The longest form that is read as a whole so that placeholders can be replaced. */
export const MAX_FORM_BYTES = 1024 * 1024

/** The kind of form in which a body may contain placeholders; undefined when it is not a form, or is compressed. */
export function formKind(headers: readonly Header[]): 'urlencoded' | 'multipart' | undefined {
  const find = (name: string) => headers.find(([each]) => each === name)?.[1] ?? ''
  if (!/^(identity)?$/i.test(find('content-encoding'))) return undefined
  const type = find('content-type')
  if (/^application\/x-www-form-urlencoded *(;|$)/i.test(type)) return 'urlencoded'
  return /^multipart\/form-data *(;|$)/i.test(type) ? 'multipart' : undefined
}

/** Replaces the placeholders in a form's body by their secrets. */
export function injectInForm(body: Buffer, kind: 'urlencoded' | 'multipart', request: InjectedRequest): Buffer {
  let text = body.toString('latin1')
  for (const { name, placeholder, value } of request.replacements) {
    if (!text.includes(placeholder)) continue
    request.used.add(name)
    text = text.replaceAll(placeholder, () => (kind === 'urlencoded' ? encodeURIComponent(value()) : toBytes(value())))
  }
  return Buffer.from(text, 'latin1')
}
