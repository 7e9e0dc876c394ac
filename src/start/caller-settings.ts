import { allSubjects, parseLimits } from '../core/limits/parse.ts'
import type { OwnLimits } from '../model/limit.ts'
import { isObject, parseJson } from '../read/json.ts'

/** Parses `--limit`, written with commas or as the object of a configuration file. Throws an error that says what the value must be. */
export function parseCallerLimits(value: string): OwnLimits {
  if (!value.startsWith('{')) return parseLimits(value.split(','), allSubjects)
  const given = parseJson(value)
  if (!isObject(given)) throw new Error('must be NAME=NUMBER, by comma, or {"NAME":"NUMBER"}')
  const texts = Object.entries(given).map(([name, each]) => `${name}=${each}`)
  return parseLimits(texts, allSubjects)
}
