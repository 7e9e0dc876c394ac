import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef } from 'react'

/** How long the place is kept once the others are there: those near the screen are drawn, and get their heights, frames later. */
const KEPT_MS = 1000
/**
 * Keeps the first message whose beginning is seen where it is on the screen while others are drawn before it. Browsers do so by themselves, but
 * not at the very top. Call the result before the change; `drawn` is what the change draws.
 */
export function useScrollAnchor(box: RefObject<HTMLElement | null>, drawn: unknown): () => void {
  const kept = useRef<Kept>(undefined)
  // biome-ignore lint/correctness/useExhaustiveDependencies: it runs when that is drawn
  useLayoutEffect(() => {
    if (!kept.current) return
    kept.current.restore()
    if (messagesOf(box)[0] !== kept.current.oldest) kept.current.releaseLater()
  }, [drawn])
  useEffect(() => () => kept.current?.release(), [])
  return useCallback(() => {
    kept.current?.release()
    const messages = messagesOf(box)
    const [oldest] = messages
    // The one above it may still be drawn, and get another height.
    const seen = messages.find(each => each.getBoundingClientRect().top >= 0) ?? messages.at(-1)
    if (!box.current || !oldest || !seen) return
    kept.current = keepPlace(box.current, { oldest, seen }, () => {
      kept.current = undefined
    })
  }, [box])
}

interface Kept {
  /** The oldest message before the change. */
  oldest: Element
  restore(): void
  releaseLater(): void
  release(): void
}

const messagesOf = (box: RefObject<HTMLElement | null>) => [...(box.current?.querySelectorAll('.message') ?? [])]

function keepPlace(
  box: HTMLElement,
  { oldest, seen }: { oldest: Element; seen: Element },
  onRelease: () => void,
): Kept {
  const { top } = seen.getBoundingClientRect()
  const page = document.documentElement
  let timer: ReturnType<typeof setTimeout> | undefined
  let keptY = scrollY
  const restore = () => {
    scrollBy({ top: seen.getBoundingClientRect().top - top, behavior: 'instant' })
    keptY = scrollY
  }
  const release = () => {
    clearTimeout(timer)
    sizes.disconnect()
    removeEventListener('scroll', moved)
    page.style.overflowAnchor = ''
    onRelease()
  }
  /** The reader has moved by itself. */
  const moved = () => {
    if (Math.abs(scrollY - keptY) > 1) release()
  }
  const sizes = new ResizeObserver(restore)
  // The browser would move by the same distance once more.
  page.style.overflowAnchor = 'none'
  sizes.observe(box)
  addEventListener('scroll', moved, { passive: true })
  return {
    oldest,
    restore,
    release,
    releaseLater() {
      timer ??= setTimeout(release, KEPT_MS)
    },
  }
}
