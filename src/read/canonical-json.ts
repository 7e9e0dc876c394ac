/** A value that JSON can hold. A field that is undefined is left out. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue | undefined }

/** JSON with one form for each value, by RFC 8785: sorted keys, no spaces, and text and numbers as ECMAScript writes them. */
export function canonicalJson(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (!isFields(value)) return JSON.stringify(value)
  let text = ''
  for (const key of Object.keys(value).sort()) {
    const each = value[key]
    if (each !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson(each)}`
  }
  return `{${text}}`
}

const isFields = (value: JsonValue): value is { readonly [key: string]: JsonValue | undefined } =>
  typeof value === 'object' && value !== null
