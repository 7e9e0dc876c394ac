/** Removes control characters: the text of a model or a tool must not control the terminal. */
export const printable = (text: string): string => text.replace(/[^\P{Cc}\n\t]/gu, '')
