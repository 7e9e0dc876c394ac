/** What a terminal gets before a line of progress is drawn, or cleared. */
const CLEAR = '\r\x1b[2K'

/** The output of a command without its progress: what takes seconds says so, as anything does on a busy machine. */
export const withoutProgress = (said: string): string =>
  said
    .split(CLEAR)
    .filter(piece => !/^[^\n]*, \d+ s$/.test(piece))
    .join('')
    .replaceAll(/^threadbox: .*, \d+ s\n/gm, '')
