const usdFormat = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', maximumFractionDigits: 2 })
const smallUsdFormat = new Intl.NumberFormat('en', {
  style: 'currency',
  currency: 'USD',
  minimumFractionDigits: 4,
  maximumFractionDigits: 4,
})
const countFormat = new Intl.NumberFormat('en')
const shortFormat = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

/** Amounts below a cent have two more digits. */
export const usd = (amount: number): string =>
  amount !== 0 && Math.abs(amount) < 0.01 ? smallUsdFormat.format(amount) : usdFormat.format(amount)

export const count = (number: number): string => countFormat.format(number)
export const short = (number: number): string => shortFormat.format(number)

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const
const STEP = 1024

export function bytes(number: number): string {
  const power = number < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log(number) / Math.log(STEP)))
  const value = number / STEP ** power
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${(ms / 1000).toFixed(1)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** Shortens an id to its kind and its end, since ids of the same minute begin alike. */
export const shortId = (id: string): string => `${id.slice(0, id.indexOf('_') + 1)}…${id.slice(-12)}`
