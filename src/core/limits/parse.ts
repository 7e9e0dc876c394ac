import {
  type LimitName,
  type LimitSubject,
  type LimitTexts,
  type LimitValue,
  limits,
  nameOfLimit,
  type OwnLimits,
} from '../../model/limit.ts'
import { didYouMean } from '../../read/closest.ts'

const periodsMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** The subjects that a list of limits may name. A name without a subject means the first of these that has such a limit. */
export type LimitSubjects = readonly LimitSubject[]

/** The limits that a key may have on its own. */
export const keySubjects: LimitSubjects = ['key', 'token', 'user']
export const teamSubjects: LimitSubjects = ['team']
export const allSubjects: LimitSubjects = ['key', 'token', 'user', 'address', 'team']

/** Reads `requests=5/s` or `key.requests=5/s`. Throws an error that says what is wrong. */
export function parseLimit(text: string, subjects: LimitSubjects): { name: LimitName; value: LimitValue } {
  const [, wanted = '', amount = ''] = /^\s*([a-z.]+)\s*=\s*(\S+)\s*$/.exec(text) ?? []
  if (wanted === '') throw new Error('must be NAME=NUMBER, as requests=5/s or runs=2')
  const known = subjects.flatMap(subject => limits.filter(each => each.subject === subject))
  const found = known.find(each => nameOfLimit(each) === wanted || each.name === wanted)
  if (!found) {
    const names = known.map(nameOfLimit)
    throw new Error(`no such limit: ${wanted}${didYouMean(wanted, names) || `; there are ${names.join(', ')}`}`)
  }
  return { name: nameOfLimit(found), value: parseValue(amount, found.kind === 'rate', wanted) }
}

function parseValue(text: string, isRate: boolean, name: string): LimitValue {
  const [, digits = '', unit] = /^(\d{1,12})(?:\/([smhd]))?$/.exec(text) ?? []
  const count = Number(digits)
  if (digits === '' || (count > 0 && isRate !== (unit !== undefined)))
    throw new Error(
      isRate
        ? `${name} must be like 5/s, 100/m, 1000/h or 5000/d; 0 is no limit`
        : `${name} must be a whole number; 0 is no limit`,
    )
  return { count, periodMs: isRate ? periodsMs[(unit ?? 's') as keyof typeof periodsMs] : 0 }
}

/** Reads several limits, as texts or as an object of texts. Throws an error that explains the first wrong one. */
export function parseLimits(given: readonly string[] | LimitTexts, subjects: LimitSubjects): OwnLimits {
  const texts = Array.isArray(given) ? given : Object.entries(given).map(([name, value]) => `${name}=${value}`)
  const parsed = texts.map(text => parseLimit(text, subjects))
  return Object.fromEntries(parsed.map(({ name, value }) => [name, value]))
}

/** Reads stored limits. This or another version wrote them, so an unknown limit is ignored. */
export function readLimits(stored: LimitTexts): OwnLimits {
  const own: OwnLimits = {}
  for (const [name, text] of Object.entries(stored)) {
    try {
      Object.assign(own, parseLimits({ [name]: text }, allSubjects))
    } catch {}
  }
  return own
}

/** Writes a limit as `--limit` takes it: `5/s`, `2`. */
export function formatLimit({ count, periodMs }: LimitValue): string {
  const unit = Object.entries(periodsMs).find(([, ms]) => ms === periodMs)?.[0]
  return unit === undefined || count === 0 ? String(count) : `${count}/${unit}`
}

export const formatLimits = (own: OwnLimits): LimitTexts =>
  Object.fromEntries(Object.entries(own).map(([name, value]) => [name, formatLimit(value)]))

/** The limits of a server without any settings. */
export const defaultLimits = (): Record<LimitName, LimitValue> => {
  const texts = limits.map(each => [nameOfLimit(each), each.default] as const)
  return parseLimits(Object.fromEntries(texts), allSubjects) as Record<LimitName, LimitValue>
}
