import { createSearch, type Finder } from './find-values.ts'

/** A shorter value is no secret: it would be found everywhere. */
const MIN_SECRET_CHARS = 4

type Variables = Readonly<Record<string, string>>

const listValues = (variables: Variables) =>
  Object.entries(variables)
    .filter(([, value]) => value.length >= MIN_SECRET_CHARS)
    .map(([name, value]) => ({ value, name: `[${name}]` }))

/** Replaces the value of each variable by the variable's name. Values that touch each other have one name. */
export function withoutValues(text: string, variables: Variables): string {
  const filter = createValueFilter(variables)
  return filter.push(text) + filter.end()
}

/** `withoutValues` for text that comes in pieces, also where a value is split between two of them. */
export interface ValueFilter {
  /** The text that can be shown now, of this piece and of what was held back before. */
  push(text: string): string
  /** The text that is still held back. */
  end(): string
}

/** A part of a text, and what stands in its place. */
interface Range {
  from: number
  to: number
  name: string
}

interface Search {
  values: { value: string; name: string }[]
  begin: () => Finder
}

/** Of variables that do not change. They may be long, and are looked for in all that a create prints. */
const searches = new WeakMap<Variables, Search>()

function searchOf(variables: Variables): Search {
  const known = searches.get(variables)
  if (known) return known
  const values = listValues(variables)
  const made = { values, begin: createSearch(values.map(({ value }) => value)) }
  searches.set(variables, made)
  return made
}

/** Takes time in proportion to the text, whatever the values and however many: both may come from a stranger. */
export function createValueFilter(variables: Variables): ValueFilter {
  const { values, begin } = searchOf(variables)
  const find = begin()
  /** What may be the beginning of a value. */
  let held = ''
  /** The values in it, which do not touch each other, in their order. */
  let ranges: Range[] = []
  /** Whether the text shown last is a name whose value may go on in the next piece. */
  let isInside = false

  const add = (range: Range) => {
    let { from, name } = range
    for (let last = ranges.at(-1); last && last.to >= from; last = ranges.at(-1)) {
      ranges.pop()
      if (last.from < from) ({ from, name } = last)
    }
    ranges.push({ from, to: range.to, name })
  }

  /** Shows the text up to a place. The rest is held. */
  const show = (text: string, cut: number): string => {
    let shown = ''
    let at = 0
    for (const { from, to, name } of ranges) {
      if (from >= cut) break
      if (from > at) shown += text.slice(at, from)
      if (from > at || (at === 0 && !isInside)) shown += name
      isInside = true
      at = Math.max(at, to)
    }
    if (at < cut) {
      shown += text.slice(at, cut)
      isInside = false
    }
    held = text.slice(cut)
    ranges = ranges
      .filter(({ to }) => to > cut)
      .map(({ from, to, name }) => ({ from: Math.max(0, from - cut), to: to - cut, name }))
    return shown
  }

  return {
    push(piece) {
      const text = held + piece
      const begun = find(text, held.length, (index, to) => {
        const { value, name } = values[index] ?? { value: '', name: '' }
        add({ from: to - value.length, to, name })
      })
      return show(text, text.length - begun)
    },
    end: () => show(held, held.length),
  }
}
