import type { IdPrefix } from '../model/prefixes.ts'

/** A new id: ids of one prefix sort by the time they were made. */
export const newId = (prefix: IdPrefix): string => `${prefix}_${Bun.randomUUIDv7()}`

/** This moment as it is stored: ISO 8601, UTC, milliseconds. */
export const now = (): string => new Date().toISOString()
