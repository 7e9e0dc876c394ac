const deleted = new Set<unknown>()

/**
 * Deletes what has this id, and leaves the page of it. Until then events do not have the page read it again: the server tells of
 * the deletion before it answers, and would say that nothing is there.
 */
export async function whileDeleting(id: string, remove: () => Promise<void>): Promise<void> {
  deleted.add(id)
  try {
    await remove()
  } finally {
    deleted.delete(id)
  }
}

/** Whether a query reads what is being deleted. */
export const isOfDeleted = (queryKey: readonly unknown[]): boolean => queryKey.some(part => deleted.has(part))
