import { distance } from 'fastest-levenshtein'

/** The known word that a mistyped one most likely stands for, or undefined when each of them is too far from it. */
export function findClosest(word: string, known: readonly string[]): string | undefined {
  // Longer than any of ours: comparing would only cost time.
  if (word.length > 64) return undefined
  const ranked = known
    .map(each => ({ each, typos: countTypos(word.toLowerCase(), each) }))
    .sort((one, other) => one.typos - other.typos)
  const [nearest] = ranked
  return nearest && nearest.typos <= Math.max(1, Math.floor(word.length / 3)) ? nearest.each : undefined
}

/** Letters to insert, delete or replace to get from one word to the other. Two letters that are swapped count once. */
export function countTypos(word: string, known: string): number {
  const isShuffled = [...word].sort().join('') === [...known].sort().join('')
  return isShuffled ? distance(word, known) / 2 : distance(word, known)
}

/**
 * The end of a sentence about an unknown word; empty when nothing known is close to it. `mark` is what every word has in
 * front of it, such as the dashes of a flag.
 */
export function didYouMean(word: string, known: readonly string[], mark = ''): string {
  const closest = findClosest(word, known)
  return closest === undefined ? '' : `; did you mean ${mark}${closest}?`
}
