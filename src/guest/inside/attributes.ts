import { dlopen, FFIType, ptr } from 'bun:ffi'

/** Callers keep attributes with files under names of their own: these are extended attributes with this prefix. */
const PREFIX = 'user.e2b.'
/** Linux allows this many bytes for the names of a file's attributes, and for one value. */
const MAX_BYTES = 64 * 1024

export interface Attributes {
  /** Returns an empty object also where the file system has no attributes. */
  read(path: string): Record<string, string>
  /** Throws an error with the code of Linux. */
  write(fd: number, attributes: Readonly<Record<string, string>>): void
}

/** Linux's calls for extended attributes. A link itself has none. */
export function openAttributes(): Attributes {
  const { i32, i64, u64, pointer } = FFIType
  const { symbols: libc } = dlopen('libc.so.6', {
    llistxattr: { args: [pointer, pointer, u64], returns: i64 },
    lgetxattr: { args: [pointer, pointer, pointer, u64], returns: i64 },
    fsetxattr: { args: [i32, pointer, pointer, u64, i32], returns: i32 },
  })
  const [names, value] = [Buffer.alloc(MAX_BYTES), Buffer.alloc(MAX_BYTES)]

  return {
    read(path) {
      const at = text(path)
      const length = Number(libc.llistxattr(ptr(at), ptr(names), names.byteLength))
      const found: Record<string, string> = {}
      if (length <= 0) return found
      for (const name of names.toString('latin1', 0, length).split('\0')) {
        if (!name.startsWith(PREFIX)) continue
        const size = Number(libc.lgetxattr(ptr(at), ptr(text(name)), ptr(value), value.byteLength))
        if (size >= 0) found[name.slice(PREFIX.length)] = value.toString('utf8', 0, size)
      }
      return found
    },
    write(fd, attributes) {
      for (const [name, content] of Object.entries(attributes)) {
        // A pointer to nothing is refused, also for no bytes.
        const bytes = text(content)
        if (libc.fsetxattr(fd, ptr(text(PREFIX + name)), ptr(bytes), bytes.byteLength - 1, 0) !== 0) throw failure()
      }
    },
  }
}

const text = (value: string) => Buffer.from(`${value}\0`)

/** The errno is not read, because Bun may have set it anew before it could be. */
const failure = () => Object.assign(new Error('attributes cannot be kept here'), { code: 'ENOTSUP' })
