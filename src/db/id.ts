/** What an id is of. */
export type IdPrefix = 'sbx' | 'env' | 'thr' | 'run' | 'msg' | 'key' | 'team' | 'agt' | 'dep' | 'call'

/** A new id: ids of one prefix sort by the time they were made. */
export const newId = (prefix: IdPrefix): string => `${prefix}_${Bun.randomUUIDv7()}`

/** This moment as it is stored: ISO 8601, UTC, milliseconds. */
export const now = (): string => new Date().toISOString()
