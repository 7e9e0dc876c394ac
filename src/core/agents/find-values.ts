/** Searches a growing text from `start` on. Returns how many of the text's last characters may be the beginning of a value. */
export type Finder = (text: string, start: number, onFound: (index: number, to: number) => void) => number

const NONE = -1

/**
 * Finds values by the algorithm of Aho and Corasick: the longest one that ends at each place. Takes time in proportion to the
 * text, and some twenty bytes for each character of the values. The returned function begins a new text.
 */
export function createSearch(values: readonly string[]): () => Finder {
  const most = values.reduce((sum, { length }) => sum + length, 1)
  // Each node stands for the beginning of a value; the first one is empty.
  const chars = new Uint16Array(most)
  const depths = new Int32Array(most)
  /** For each node, the node that stands for the longest proper suffix of its text. */
  const ends = new Int32Array(most)
  /** For each node, the index of the longest value that its text ends with. */
  const found = new Int32Array(most).fill(NONE)
  /** The child that each node got first; 0 when it has none. */
  const firsts = new Int32Array(most)
  /** The other children, by node and character: no more than there are values. */
  const others = new Map<number, number>()
  let count = 1

  const keyOf = (node: number, char: number) => node * 65_536 + char
  /** Returns 0 when the node has no child of this character. */
  const childOf = (node: number, char: number): number => {
    const first = firsts[node] ?? 0
    if (first === 0 || chars[first] === char) return first
    return others.get(keyOf(node, char)) ?? 0
  }
  const step = (from: number, char: number): number => {
    let node = from
    for (;;) {
      const child = childOf(node, char)
      if (child !== 0 || node === 0) return child
      node = ends[node] ?? 0
    }
  }

  const add = (parent: number, char: number): number => {
    const node = count++
    const end = parent === 0 ? 0 : step(ends[parent] ?? 0, char)
    ends[node] = end
    found[node] = found[end] ?? NONE
    depths[node] = (depths[parent] ?? 0) + 1
    chars[node] = char
    if (firsts[parent]) others.set(keyOf(parent, char), node)
    else firsts[parent] = node
    return node
  }

  // All values are added one character at a time, so a node's suffix, which is shorter, exists before the node.
  let growing = values.map((value, index) => ({ value, index, node: 0 }))
  for (let depth = 0; growing.length > 0; depth++) {
    for (const each of growing) {
      const char = each.value.charCodeAt(depth)
      each.node = childOf(each.node, char) || add(each.node, char)
      if (each.value.length === depth + 1) found[each.node] = each.index
    }
    growing = growing.filter(({ value }) => value.length > depth + 1)
  }

  return () => {
    let node = 0
    return (text, start, onFound) => {
      for (let at = start; at < text.length; at++) {
        node = step(node, text.charCodeAt(at))
        const index = found[node] ?? NONE
        if (index !== NONE) onFound(index, at + 1)
        // No longer value begins with the text of this node.
        while (node !== 0 && firsts[node] === 0) node = ends[node] ?? 0
      }
      return depths[node] ?? 0
    }
  }
}
