import { ApiError } from '../../../errors.ts'

const HEADER = 'x-metadata-'
/** The longest name of an attribute in Linux, less the prefix that is added. */
const MAX_KEY_BYTES = 246
const MAX_BYTES = 4096
const PREFIX_BYTES = 'user.e2b.'.length

/** Reads from headers the attributes to keep with files. Throws invalid_request for names or values that files cannot keep. */
export function metadataOf(headers: Headers): Record<string, string> {
  const metadata: Record<string, string> = {}
  let bytes = 0
  for (const [name, value] of headers) {
    if (!name.startsWith(HEADER)) continue
    const key = name.slice(HEADER.length)
    const field = `${HEADER}${key.slice(0, 100)}`
    const refuse = (what: string) => new ApiError('invalid_request', `${field}: ${what}`, { field })
    if (key === '' || key.length > MAX_KEY_BYTES) throw refuse(`the key must have 1 to ${MAX_KEY_BYTES} characters`)
    if (!/^[\x20-\x7e]*$/.test(key) || !/^[\x20-\x7e]*$/.test(value)) throw refuse('must be printable ASCII')
    bytes += PREFIX_BYTES + key.length + value.length
    if (bytes > MAX_BYTES) throw refuse(`all metadata of a file may have ${MAX_BYTES} bytes`)
    metadata[key] = value
  }
  return metadata
}
