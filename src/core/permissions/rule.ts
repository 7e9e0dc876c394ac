import { bounds, excerpt } from '../../bounds.ts'
import { isObject, type JsonObject } from '../../read/json.ts'
import {
  allowsCommand,
  type BashCommand,
  type BashPattern,
  couldMatch,
  parseBashPattern,
  readBashCommand,
} from './bash/bash-rule.ts'
import { couldTouch, coversPaths, type PathPattern, type Place } from './path-rule.ts'
import { groups } from './tool-names.ts'

/** One rule: a tool, or those of its calls that a pattern describes. */
export interface Rule {
  /** As it was written. */
  text: string
  tool: string
  pattern?: BashPattern | PathPattern | DomainPattern
  /** The tool of this name alone, and not those that it stands for. */
  isOne?: boolean
}

interface DomainPattern {
  type: 'domain'
  name: string
  hasSubdomains: boolean
}

/** A call of a tool, ready to be compared with rules. */
export interface Call {
  name: string
  input: JsonObject
  place: Place
  command: BashCommand | undefined
}

export const readCall = (name: string, input: unknown, place: Place): Call => {
  const fields = isObject(input) ? input : {}
  const command = name === 'Bash' && typeof fields.command === 'string' ? readBashCommand(fields.command) : undefined
  return { name, input: fields, place, command }
}

/**
 * Parses a rule in Claude's form: `Bash`, `Bash(git push:*)`, `Read(src/**)`, `WebFetch(domain:example.com)`, `mcp__server`,
 * `mcp__server__tool`, `*`. Throws with what is wrong with it.
 */
export function parseRule(text: string): Rule {
  const trimmed = text.trim()
  const wrong = (what: string) => new Error(`${JSON.stringify(excerpt(text))} is no rule: ${what}`)
  const open = trimmed.indexOf('(')
  const named = (open < 0 ? trimmed : trimmed.slice(0, open)).trim()
  const tool = named.startsWith('mcp__') ? named.replace(/__\*?$/, '') : named
  if (tool !== '*' && !/^[A-Za-z0-9_-]+$/.test(tool)) throw wrong('it does not begin with the name of a tool')
  if (open < 0) return { text: trimmed, tool }
  if (!trimmed.endsWith(')')) throw wrong('its bracket is not closed')
  const content = trimmed.slice(open + 1, -1).trim()
  if (content === '*' || content === '**') return { text: trimmed, tool }
  if (content === '') throw wrong('its brackets are empty')
  try {
    return { text: trimmed, tool, pattern: parsePattern(tool, content) }
  } catch (error) {
    throw wrong(error instanceof Error ? error.message : String(error))
  }
}

function parsePattern(tool: string, content: string): NonNullable<Rule['pattern']> {
  if (tool === 'Bash') return parseBashPattern(content)
  if (Object.values(groups).some(names => names.includes(tool))) {
    if (content.length > bounds.path) throw new Error(`its path is longer than ${bounds.path} characters`)
    return { type: 'path', text: content.replace(/^\/+/, '/') }
  }
  if (tool !== 'WebFetch') throw new Error(`${tool} takes no pattern`)
  const domain = /^domain:(\*\.)?([A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])$/.exec(content)
  const [, wildcard, name = ''] = domain ?? []
  if (!domain) throw new Error('its pattern must be domain:NAME')
  return { type: 'domain', name: cleanHost(name), hasSubdomains: wildcard !== undefined }
}

const cleanHost = (host: string): string => host.toLowerCase().replace(/\.$/, '')

/** Whether a rule is about a tool, for some of its calls at least. */
export const isAbout = ({ tool, isOne }: Rule, name: string): boolean =>
  tool === '*' ||
  tool === name ||
  (!isOne && groups[tool]?.includes(name) === true) ||
  (tool.startsWith('mcp__') && name.startsWith(`${tool}__`))

/** The first rule that surely allows a call; for commands, any of those that do so together. */
export function findAllowing(rules: readonly Rule[], call: Call): Rule | undefined {
  const about = rules.filter(rule => isAbout(rule, call.name))
  const whole = about.find(rule => covers(rule, call))
  if (whole || !call.command) return whole
  const patterns = about.flatMap(({ pattern }) => (pattern && isBash(pattern) ? [pattern] : []))
  return allowsCommand(patterns, call.command) ? about[0] : undefined
}

function covers({ pattern }: Rule, { name, input, place }: Call): boolean {
  if (!pattern) return true
  if (pattern.type === 'path') return coversPaths(pattern, name, input, place)
  if (pattern.type !== 'domain') return false
  const host = hostOf(input.url)
  return host !== undefined && (pattern.hasSubdomains ? host.endsWith(`.${pattern.name}`) : host === pattern.name)
}

/** The first rule that a call may fall under. */
export const findMatching = (rules: readonly Rule[], call: Call): Rule | undefined =>
  rules.find(rule => isAbout(rule, call.name) && mayCover(rule, call))

function mayCover({ pattern }: Rule, { name, input, place, command }: Call): boolean {
  if (!pattern) return true
  if (pattern.type === 'path') return couldTouch(pattern, name, input, place)
  if (pattern.type !== 'domain') return !command || couldMatch(pattern, command)
  const host = hostOf(input.url)
  if (host === undefined) return true
  return host.endsWith(`.${pattern.name}`) || (!pattern.hasSubdomains && host === pattern.name)
}

const isBash = (pattern: NonNullable<Rule['pattern']>): pattern is BashPattern =>
  pattern.type !== 'path' && pattern.type !== 'domain'

/** The host of a URL as the network sees it. */
export function hostOf(url: unknown): string | undefined {
  if (typeof url !== 'string') return undefined
  const parsed = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(url) ? url : `https://${url}`)
  return parsed?.hostname ? cleanHost(parsed.hostname) : undefined
}
