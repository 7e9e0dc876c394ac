import { timingSafeEqual } from 'node:crypto'

/** Compares two secrets in a time that does not depend on where they differ. */
export function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.byteLength === right.byteLength && timingSafeEqual(left, right)
}
