import { dlopen, FFIType, ptr } from 'bun:ffi'
import { GuestError } from '../wire/requests.ts'

/** The kernel's bits for changes. */
export const masks = {
  modify: 0x2,
  attributes: 0x4,
  movedFrom: 0x40,
  movedTo: 0x80,
  create: 0x100,
  delete: 0x200,
  deleteSelf: 0x400,
  moveSelf: 0x800,
  overflow: 0x4000,
  ignored: 0x8000,
  isDirectory: 0x40000000,
} as const

const ONLY_DIRECTORIES = 0x1000000
const DONT_FOLLOW = 0x2000000
const WATCHED =
  masks.modify |
  masks.attributes |
  masks.movedFrom |
  masks.movedTo |
  masks.create |
  masks.delete |
  masks.deleteSelf |
  masks.moveSelf
const NONBLOCK_CLOEXEC = 0x80800

/** Before the name come the watch, the mask, the cookie and the name's length. */
const HEAD_BYTES = 16

export interface KernelChange {
  watch: number
  mask: number
  /** Both ends of a rename have the same cookie. */
  cookie: number
  /** The name is empty for the watched directory itself. */
  name: string
}

export interface Inotify {
  /** A descriptor that does not block. Throws a GuestError when there can be no more. */
  open(): number
  /** The number of a directory's watch; undefined when there is no such directory, or no more may be watched. */
  add(fd: number, path: string, follow: boolean): number | undefined
  remove(fd: number, watch: number): void
  /** The number of descriptors in use, as their users count them. */
  openCount: number
}

/** Linux's calls to watch directories. */
export function openInotify(): Inotify {
  const { i32, u32, pointer } = FFIType
  const { symbols: libc } = dlopen('libc.so.6', {
    inotify_init1: { args: [i32], returns: i32 },
    inotify_add_watch: { args: [i32, pointer, u32], returns: i32 },
    inotify_rm_watch: { args: [i32, i32], returns: i32 },
  })
  return {
    openCount: 0,
    open() {
      const fd = libc.inotify_init1(NONBLOCK_CLOEXEC)
      if (fd < 0) throw full()
      return fd
    },
    add(fd, path, follow) {
      const flags = WATCHED | ONLY_DIRECTORIES | (follow ? 0 : DONT_FOLLOW)
      const watch = libc.inotify_add_watch(fd, ptr(Buffer.from(`${path}\0`)), flags)
      return watch < 0 ? undefined : watch
    },
    remove: (fd, watch) => void libc.inotify_rm_watch(fd, watch),
  }
}

/** Reads the changes from bytes of a descriptor, which always hold whole changes. */
export function* changesIn(bytes: Buffer): Generator<KernelChange, void> {
  for (let at = 0; at + HEAD_BYTES <= bytes.byteLength; ) {
    const length = bytes.readUInt32LE(at + 12)
    const name = bytes.toString('utf8', at + HEAD_BYTES, at + HEAD_BYTES + length).split('\0', 1)[0] ?? ''
    yield { watch: bytes.readInt32LE(at), mask: bytes.readUInt32LE(at + 4), cookie: bytes.readUInt32LE(at + 8), name }
    at += HEAD_BYTES + length
  }
}

export const full = () => new GuestError('sandbox_unavailable', 'The sandbox watches as many directories as it may.')
