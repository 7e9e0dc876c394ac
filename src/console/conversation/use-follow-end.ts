import { type RefObject, useEffect, useRef } from 'react'

/** So near to the end, a reader is taken to be there. */
const NEAR_PX = 120

/** Begins at the end of a conversation, and stays there as it grows, until its reader scrolls up. For the element that grows. */
export function useFollowEnd(): RefObject<HTMLDivElement | null> {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const root = document.documentElement
    let isAtEnd = true
    let seenAt = 0
    const look = () => {
      const isNear = root.scrollHeight - innerHeight - scrollY < NEAR_PX
      // What has grown since moves the end away: only a reader moves up.
      isAtEnd = scrollY < seenAt ? isNear : isAtEnd || isNear
      seenAt = scrollY
    }
    const growth = new ResizeObserver(() => {
      if (isAtEnd) scrollTo({ top: root.scrollHeight })
    })
    if (box.current) growth.observe(box.current)
    addEventListener('scroll', look, { passive: true })
    return () => {
      growth.disconnect()
      removeEventListener('scroll', look)
    }
  }, [])
  return box
}
