const PREFIX = 'threadbox-one-off-'

/** A name for the data directory of one `run` or `exec`. */
export const newDataDirectory = (): string => `${PREFIX}${crypto.randomUUID()}`

export const isDataDirectory = (name: string): boolean => name.startsWith(PREFIX)
