/** Shared by all who ask; after a failure the next one tries again. */
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
