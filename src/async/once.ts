/** Calls `bring` at the first call and shares its result; after a failure the next call tries again. */
export function once<T>(bring: () => Promise<T>): () => Promise<T> {
  let brought: Promise<T> | undefined
  return () => {
    brought ??= bring().catch(error => {
      brought = undefined
      throw error
    })
    return brought
  }
}
