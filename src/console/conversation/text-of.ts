/** What the text parts of a message say. */
export const textOf = (parts: readonly { type: string }[]): string =>
  parts
    .flatMap(part => (part.type === 'text' && 'text' in part && typeof part.text === 'string' ? [part.text] : []))
    .join('\n')
