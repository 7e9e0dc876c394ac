import { type RefObject, useEffect, useRef, useState } from 'react'

/** Beside the screen, above and below: what a reader reaches before it could be drawn. */
const MARGIN = '1500px 0px'

export interface Near {
  box: RefObject<HTMLElement | null>
  isNear: boolean
  /** How high the element was when it was near; undefined while it is, and when it never was. */
  heightPx: number | undefined
}

/** Whether an element is near the screen. One that is not watched always counts as near. */
export function useNear(isWatched: boolean): Near {
  const box = useRef<HTMLElement>(null)
  const [seen, setSeen] = useState<{ isNear: boolean; heightPx?: number }>({ isNear: !isWatched })
  useEffect(() => {
    const element = box.current
    if (!isWatched || !element) return
    const observer = new IntersectionObserver(
      entries => {
        const entry = entries.at(-1)
        if (entry?.isIntersecting) setSeen({ isNear: true })
        // What was never near has no height of its own yet.
        else if (entry)
          setSeen(last => (last.isNear ? { isNear: false, heightPx: entry.boundingClientRect.height } : last))
      },
      { rootMargin: MARGIN },
    )
    observer.observe(element)
    return () => observer.disconnect()
  }, [isWatched])
  const isNear = !isWatched || seen.isNear
  return { box, isNear, heightPx: isNear ? undefined : seen.heightPx }
}
