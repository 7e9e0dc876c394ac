import { HttpError } from './http-error.ts'

export type Header = readonly [name: string, value: string]

export interface RequestHead {
  method: string
  target: string
  version: '1.0' | '1.1'
  /** Their names are in small letters. */
  headers: Header[]
}

export interface ResponseHead {
  status: number
  reason: string
  version: '1.0' | '1.1'
  headers: Header[]
}

/** The largest head, with the empty line at its end. */
export const MAX_HEAD_BYTES = 64 * 1024

const requestLine = /^([!#$%&'*+.^_`|~A-Za-z0-9-]{1,32}) ([\x21-\x7e]+) HTTP\/(1\.[01])$/
const statusLine = /^HTTP\/(1\.[01]) ([1-9]\d\d)(?: ([\t\x20-\x7e\x80-\xff]*))?$/
const fieldName = /^[!#$%&'*+.^_`|~A-Za-z0-9-]+$/
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** Header fields of one head. A lookup goes through all of them. */
const MAX_FIELDS = 1000

/** Throws an HttpError for a head that two servers could read in two ways. */
export function parseRequest(bytes: Buffer): RequestHead {
  const [first = '', ...rest] = splitLines(bytes)
  const [, method, target, version] = requestLine.exec(first) ?? []
  if (!method || !target || !version) throw new HttpError(400, 'the request line is not valid')
  const head: RequestHead = {
    method,
    target,
    version: version === '1.0' ? '1.0' : '1.1',
    headers: parseFields(rest, 400),
  }
  const hosts = getValues(head.headers, 'host').length
  if (hosts > 1 || (hosts === 0 && version === '1.1')) throw new HttpError(400, 'there must be one host header')
  return head
}

export function parseResponse(bytes: Buffer): ResponseHead {
  const [first = '', ...rest] = splitLines(bytes)
  const [, version, status, reason = ''] = statusLine.exec(first) ?? []
  if (!status) throw new HttpError(502, 'the answer is not HTTP/1.1')
  const headers = parseFields(rest, 502)
  return { status: Number(status), reason, version: version === '1.0' ? '1.0' : '1.1', headers }
}

export const getValues = (headers: readonly Header[], name: string): string[] =>
  headers.filter(([each]) => each === name).map(([, value]) => value)

const hopByHop = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'content-length'],
])

/** The headers that a proxy passes on: those that are not about one connection. The next connection has its own framing. */
export function endToEnd(headers: readonly Header[]): Header[] {
  const named = new Set(getValues(headers, 'connection').flatMap(listWords))
  return headers.filter(([name]) => !hopByHop.has(name) && !named.has(name))
}

/** Whether the client will send another request on this connection. */
export function isKept({ version, headers }: RequestHead): boolean {
  const words = [...getValues(headers, 'connection'), ...getValues(headers, 'proxy-connection')].flatMap(listWords)
  return version === '1.1' && !words.includes('close')
}

/** The words of a comma-separated header, in small letters. */
const listWords = (value: string): string[] => value.toLowerCase().split(',').map(trimmed)

/** Trims spaces and tabs alone. No pattern: it would take quadratic time for a long run of spaces. */
function trimmed(text: string): string {
  const isSpace = (at: number) => text[at] === ' ' || text[at] === '\t'
  let start = 0
  let end = text.length
  while (start < end && isSpace(start)) start++
  while (end > start && isSpace(end - 1)) end--
  return text.slice(start, end)
}

export const formatHead = (first: string, headers: readonly Header[]): string =>
  `${first}\r\n${formatFields(headers)}\r\n`

export const formatFields = (headers: readonly Header[]): string =>
  headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')

function splitLines(bytes: Buffer): string[] {
  return bytes.toString('latin1').slice(0, -4).split('\r\n')
}

/** Throws an HttpError for lines that are no header fields. */
export function parseFields(lines: readonly string[], status: 400 | 502): Header[] {
  if (lines.length > MAX_FIELDS) throw new HttpError(status === 400 ? 431 : status, `more than ${MAX_FIELDS} headers`)
  return lines.map(line => {
    const colon = line.indexOf(':')
    const [name, value] = [line.slice(0, Math.max(colon, 0)), trimmed(line.slice(colon + 1))]
    if (!fieldName.test(name) || !fieldValue.test(value)) throw new HttpError(status, 'a header is not valid')
    return [name.toLowerCase(), value]
  })
}
