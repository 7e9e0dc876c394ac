import type { FileInfo } from '../../../plugin-api/index.ts'

/** A file or directory in this protocol's form. */
export interface Entry {
  name: string
  type: 'FILE_TYPE_FILE' | 'FILE_TYPE_DIRECTORY' | 'FILE_TYPE_SYMLINK'
  path: string
  /** Protobuf's JSON writes a 64-bit number as text. */
  size: string
  mode: number
  permissions: string
  owner: string
  group: string
  modifiedTime: string
  /** The absolute path that a link leads to. */
  symlinkTarget?: string
  metadata?: Readonly<Record<string, string>>
}

/** Describes a file. A link is described as what it leads to; one that leads nowhere is a symlink. */
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
