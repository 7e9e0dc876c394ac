/** The size that providers accept, less what base64 adds. */
export const MAX_IMAGE_BYTES = 3_500_000

/** The first bytes of each format, in hexadecimal. */
const signatures: [mediaType: string, pattern: RegExp][] = [
  ['image/png', /^89504e470d0a1a0a/],
  ['image/jpeg', /^ffd8ff/],
  ['image/gif', /^47494638(37|39)61/],
  ['image/webp', /^52494646.{8}57454250/],
]

/** The media type by a file's first bytes. Undefined when models take no such image. */
export function detectImageType(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 16)).toString('hex')
  return signatures.find(([, pattern]) => pattern.test(head))?.[0]
}
