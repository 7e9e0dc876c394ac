import { Type } from '@sinclair/typebox'

const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const MAX_LIFETIME_MS = unitMs.d
const DEFAULT_LIFETIME_MS = unitMs.h
/** How long a link may open a port for which a key was used: agents work behind such links for weeks. */
export const MAX_LINK_OF_KEY_MS = 30 * unitMs.d

/** How long a token or link is valid. */
export const Lifetime = Type.Optional(
  Type.String({
    pattern: '^[1-9][0-9]{0,5}[smhd]$',
    description: '900s, 15m, 1h, 2d; at most 24h, a link of a key 30d',
    errorMessage: 'must be a number and s, m, h or d, as 900s, 15m or 1h',
  }),
)

/** A lifetime in milliseconds: one hour by default, one day at most unless `longestMs` says otherwise. */
export function lifetimeMs(text: string | undefined, longestMs: number = MAX_LIFETIME_MS): number {
  if (text === undefined) return DEFAULT_LIFETIME_MS
  const [, count, unit] = /^(\d+)([smhd])$/.exec(text) ?? []
  return Math.min(Number(count) * unitMs[unit as keyof typeof unitMs], longestMs)
}
