/** Counts who needs what has a name. */
export interface Holds {
  /** It is needed until this is disposed of. */
  hold(name: string): Disposable
  has(name: string): boolean
  /** Returns how many holds a name has. */
  count(name: string): number
  names(): Iterable<string>
}

/** `onFree` is called when the last hold of a name is disposed of. */
export function createHolds(onFree: (name: string) => void = () => {}): Holds {
  const counts = new Map<string, number>()
  return {
    hold(name) {
      counts.set(name, (counts.get(name) ?? 0) + 1)
      let isHeld = true
      return {
        [Symbol.dispose]() {
          if (!isHeld) return
          isHeld = false
          const left = (counts.get(name) ?? 0) - 1
          if (left > 0) return void counts.set(name, left)
          counts.delete(name)
          onFree(name)
        },
      }
    },
    has: name => counts.has(name),
    count: name => counts.get(name) ?? 0,
    names: () => counts.keys(),
  }
}
