import { randomInt } from 'node:crypto'

/** What the values of some services begin with, which programs look at. The longest one counts. */
const prefixes = [
  ...['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_', 'glpat-', 'npm_', 'pypi-', 'hf_', 'gsk_', 'r8_'],
  ...['sk-', 'sk-ant-', 'sk-ant-api03-', 'sk-ant-oat01-', 'sk-proj-', 'sk-or-v1-', 'sk_live_', 'sk_test_', 'rk_live_'],
  ...['xoxb-', 'xoxp-', 'xapp-', 'AKIA', 'ASIA', 'AIza', 'dop_v1_', 'lin_api_', 'sntrys_', 'key-'],
].sort((a, b) => b.length - a.length)

const DIGITS = '0123456789'
const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const ALL = `${DIGITS}${UPPER}${UPPER.toLowerCase()}`

/** The smallest set of characters that a text is of. */
const alphabets: [RegExp, string][] = [
  [/^[0-9a-f]+$/, `${DIGITS}abcdef`],
  [/^[0-9A-Z]+$/, `${DIGITS}${UPPER}`],
  [/^/, ALL],
]

/** Shorter ones could be guessed, or stand in a text by chance. */
const MIN_RANDOM = 16
const USUAL_RANDOM = 40
const MAX_RANDOM = 512

/**
 * A random text that programs take for the value: with the prefix that its service gives to all, and as long. Of a value that is
 * of no known shape it has nothing but its length and characters when it is long and plain, and otherwise nothing.
 */
export function makePlaceholder(value: string): string {
  for (;;) {
    const made = imitate(value)
    // The value is taken out of answers: the placeholder must outlast that.
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
  // The one shape with a mark within, which is at the same place in all of them.
  if (prefix === 'github_pat_' && rest[22] === '_') random[22] = '_'
  return prefix + random.join('')
}
