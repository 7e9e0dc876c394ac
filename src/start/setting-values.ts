import { resolve } from 'node:path'
import { parseRule } from '../egress/rules.ts'
import { faultsOfLimits } from '../environment/least-limits.ts'
import { parseBaseUrl } from '../gateway/settings.ts'
import type { Limits } from '../plugin-api/index.ts'
import { parseRange, withoutMapping } from '../read/addresses.ts'

/** Readers of settings' values. Each reads a text and throws an error that says what the value must be. */

export const text = (value: string) => {
  if (value === '') throw new Error('must not be empty')
  return value
}

export const number = (least: number, most = Number.MAX_SAFE_INTEGER, whole = true) => {
  return (value: string) => {
    const given = Number(value)
    const fits = value.trim() !== '' && given >= least && given <= most && (!whole || Number.isSafeInteger(given))
    if (!fits) throw new Error(`must be a ${whole ? 'whole ' : ''}number from ${least} to ${most}`)
    return given
  }
}

/** Parses a limit of each sandbox, where 0 means no limit. */
export const limit = (name: keyof Limits, most?: number, whole?: boolean) => (value: string) => {
  const given = number(0, most, whole)(value)
  const [fault] = faultsOfLimits({ [name]: given })
  if (fault) throw new Error(`${fault[1]}, or 0 for no limit`)
  return given
}

export const oneOf = (...values: readonly string[]) => {
  return (value: string) => {
    if (!values.includes(value)) throw new Error(`must be ${values.slice(0, -1).join(', ')} or ${values.at(-1)}`)
    return value
  }
}

export const names = (value: string) => {
  const each = value.split(',').map(name => text(name.trim()))
  if (new Set(each).size < each.length) throw new Error('must have each name once')
  return each
}

export const path = (value: string) => resolve(text(value))

export const paths = (value: string) => value.split(',').map(each => path(each.trim()))

export const publicUrl = (value: string) => parseBaseUrl(value).replace(/\/$/, '')

/** Parses a host name, with or without a port. */
export const domain = (value: string) => {
  const name = value.toLowerCase()
  if (
    !/^(?=.{1,200}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*(:[1-9]\d{0,4})?$/.test(
      name,
    )
  )
    throw new Error('must be a host name, as sandboxes.example.com')
  return name
}

export const runtimes = (value: string) =>
  Object.fromEntries(
    value.split(',').map(each => {
      const [, runtime, engine] = /^\s*([\w-]+)=([\w-]+)\s*$/.exec(each) ?? []
      if (!runtime || !engine) throw new Error('must be NAME=ENGINE, as claude-code=ai-sdk')
      return [runtime, engine]
    }),
  )

export const model = (value: string) => {
  if (!/^[a-z0-9][a-z0-9-]*\/\S+$/.test(value)) throw new Error('must be provider/model')
  return value
}

export const origins = (value: string) =>
  text(value)
    .split(',')
    .map(each => {
      const origin = each.trim()
      if (URL.parse(origin)?.origin !== origin) throw new Error(`must be origins like https://example.com, not ${each}`)
      return origin
    })

export const hostAndPort = (value: string) => {
  const [, host, port] = /^(\[[0-9a-f:.]+\]|[\w.-]+):(\d{1,5})$/i.exec(value) ?? []
  if (host === undefined || port === undefined) throw new Error('must be HOST:PORT, as 127.0.0.1:9464')
  return { host: host.replace(/^\[|\]$/g, ''), port: number(0, 65535)(port) }
}

export const ranges = (value: string) =>
  text(value)
    .split(',')
    .map(each => {
      const rule = parseRule(each)
      if (!rule.range) throw new Error(`must be addresses and CIDRs, not ${each}`)
      return rule
    })

export const proxies = (value: string) =>
  text(value)
    .split(',')
    .map(each => {
      const range = parseRange(each.trim())
      if (!range) throw new Error(`must be addresses and CIDRs, not ${each}`)
      return withoutMapping(range)
    })

export function apiKey(value: string): string {
  if (value.length < 16 || /\s/.test(value)) throw new Error('must be 16 or more characters without spaces')
  return value
}
