import type { FileInfo } from '../../../plugin-api/index.ts'

/** A file or directory as this wire has it. */
export interface Entry {
  name: string
  type: 'FILE_TYPE_FILE' | 'FILE_TYPE_DIRECTORY' | 'FILE_TYPE_SYMLINK'
  path: string
  /** A 64-bit number of protobuf is a text in JSON. */
  size: string
  mode: number
  permissions: string
  owner: string
  group: string
  modifiedTime: string
  /** Absolute. */
  symlinkTarget?: string
  metadata?: Readonly<Record<string, string>>
}

/** A link is what it leads to; one that leads nowhere is a symlink. */
export function entryOf(info: FileInfo): Entry {
  const { name, path, type, size, mode, permissions, owner, group, modifiedTime, symlinkTarget } = info
  const isBroken = symlinkTarget !== undefined && info.resolvedTarget === undefined
  return {
    name,
    type: isBroken ? 'FILE_TYPE_SYMLINK' : type === 'dir' ? 'FILE_TYPE_DIRECTORY' : 'FILE_TYPE_FILE',
    path,
    size: String(size),
    mode: mode & 0o777,
    permissions: permissions.replace(/^l/, 'L'),
    owner,
    group,
    modifiedTime,
    ...(symlinkTarget !== undefined && { symlinkTarget: info.resolvedTarget ?? path }),
    ...(info.attributes && Object.keys(info.attributes).length > 0 && { metadata: info.attributes }),
  }
}
