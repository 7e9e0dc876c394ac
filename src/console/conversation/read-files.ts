import type { FileUIPart } from 'ai'

/** A body has at most 10 MB, and base64 makes three bytes four. */
const MAX_BYTES = 7 * 1024 * 1024

/** Reads files as parts of a message. Throws when they are more than one message can have. */
export async function readFiles(files: readonly File[]): Promise<FileUIPart[]> {
  if (files.reduce((sum, { size }) => sum + size, 0) > MAX_BYTES)
    throw new Error('The files have more than 7 MB: put them into the sandbox instead.')
  return await Promise.all(
    files.map(async file => ({
      type: 'file' as const,
      mediaType: file.type || 'application/octet-stream',
      filename: file.name,
      url: await toDataUrl(file),
    })),
  )
}

function toDataUrl(file: File): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const reader = new FileReader()
  reader.onload = () => resolve(String(reader.result))
  reader.onerror = () => reject(reader.error ?? new Error(`${file.name} cannot be read`))
  reader.readAsDataURL(file)
  return promise
}
