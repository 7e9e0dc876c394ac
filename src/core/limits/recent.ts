/** Values by name of which only those that were set last are kept: at least `most`, and at most twice as many. */
export interface Recent<Value> {
  get(name: string): Value | undefined
  set(name: string, value: Value): void
  delete(name: string): void
  isEmpty(): boolean
}

/** Two halves, of which the older is dropped whole: a map that loses its first entry again and again becomes slow. */
export function createRecent<Value>(most: number): Recent<Value> {
  let young = new Map<string, Value>()
  let old = new Map<string, Value>()
  return {
    get: name => young.get(name) ?? old.get(name),
    set(name, value) {
      young.set(name, value)
      if (young.size <= most) return
      old = young
      young = new Map()
    },
    delete(name) {
      young.delete(name)
      old.delete(name)
    },
    isEmpty: () => young.size === 0 && old.size === 0,
  }
}
