/** Says one line to the operator, with the time. Never a secret. */
export const log = (line: string): void => console.error(`${new Date().toISOString()} ${line}`)
