/** What a model says, and a tool prints, must not steer the terminal. */
export const printable = (text: string): string => text.replace(/[^\P{Cc}\n\t]/gu, '')
