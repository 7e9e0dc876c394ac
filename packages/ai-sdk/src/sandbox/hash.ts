/** The first hexadecimal digits of the SHA-256 of a text. */
export async function hash(text: string, digits: number): Promise<string> {
  const sum = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return Array.from(new Uint8Array(sum), byte => byte.toString(16).padStart(2, '0'))
    .join('')
    .slice(0, digits)
}
