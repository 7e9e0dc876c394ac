/** Returns the text without the slashes at its end. A regular expression would begin anew at each of many slashes. */
export function withoutEndSlashes(text: string): string {
  let end = text.length
  while (text[end - 1] === '/') end--
  return text.slice(0, end)
}
