/** Frames, and the number of the last chunk in them. */
export interface Page {
  bytes: Uint8Array
  last: number
}

/** Keeps pages of stored logs that several readers may want, for example when all return after a proxy's restart. */
export interface PageCache {
  find(name: string): Page | undefined
  keep(name: string, page: Page): void
  /** Drops the pages that were not used since the last call. Call it from time to time. */
  age(): void
}

/** Makes a cache of at most `bytes`. Pages that were not used for longest go first. */
export function createPageCache(bytes = 8 * 1024 * 1024): PageCache {
  let used = new Map<string, Page>()
  let unused = new Map<string, Page>()
  let usedBytes = 0

  function age(): void {
    unused = used
    used = new Map()
    usedBytes = 0
  }

  function keep(name: string, page: Page): void {
    if (page.bytes.length > bytes / 2) return
    if (usedBytes + page.bytes.length > bytes / 2) age()
    used.set(name, page)
    usedBytes += page.bytes.length
  }

  return {
    find(name) {
      const page = used.get(name)
      if (page) return page
      const old = unused.get(name)
      if (old) keep(name, old)
      return old
    },
    keep,
    age,
  }
}
