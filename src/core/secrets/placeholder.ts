import { randomInt } from 'node:crypto'

/** Prefixes of some services' values, which programs check. The longest match counts. */
const prefixes = [
  ...['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_', 'glpat-', 'npm_', 'pypi-', 'hf_', 'gsk_', 'r8_'],
  ...['sk-', 'sk-ant-', 'sk-ant-api03-', 'sk-ant-oat01-', 'sk-proj-', 'sk-or-v1-', 'sk_live_', 'sk_test_', 'rk_live_'],
  ...['xoxb-', 'xoxp-', 'xapp-', 'AKIA', 'ASIA', 'AIza', 'dop_v1_', 'lin_api_', 'sntrys_', 'key-'],
].sort((a, b) => b.length - a.length)

const DIGITS = '0123456789'
const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const ALL = `${DIGITS}${UPPER}${UPPER.toLowerCase()}`

/** Sets of characters, smallest first: a text belongs to the first that has all its characters. */
const alphabets: [RegExp, string][] = [
  [/^[0-9a-f]+$/, `${DIGITS}abcdef`],
  [/^[0-9A-Z]+$/, `${DIGITS}${UPPER}`],
  [/^/, ALL],
]

/** A shorter random part could be guessed, or occur in a text by chance. */
const MIN_RANDOM = 16
const USUAL_RANDOM = 40
const MAX_RANDOM = 512

/**
 * Makes a random text that programs accept as the value: of the same length and with its service's prefix. When the service is
 * unknown, only the length and kind of characters of a long and plain value are kept, and nothing of any other.
 */
export function makePlaceholder(value: string): string {
  for (;;) {
    const made = imitate(value)
    // The value is removed from answers, so the placeholder must not contain it.
    if (!made.includes(value) && !value.includes(made)) return made
  }
}

function imitate(value: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value)) return crypto.randomUUID()
  const prefix = prefixes.find(each => value.startsWith(each)) ?? ''
  const rest = value.slice(prefix.length)
  const isImitable =
    rest.length >= MIN_RANDOM && rest.length <= MAX_RANDOM && (prefix !== '' || /^[A-Za-z0-9]+$/.test(rest))
  const length = isImitable ? rest.length : USUAL_RANDOM
  const alphabet = (isImitable && alphabets.find(([of]) => of.test(rest))?.[1]) || ALL
  const random = Array.from({ length }, () => alphabet[randomInt(alphabet.length)])
  // This shape alone has a separator inside, at the same place in every value.
  if (prefix === 'github_pat_' && rest[22] === '_') random[22] = '_'
  return prefix + random.join('')
}
