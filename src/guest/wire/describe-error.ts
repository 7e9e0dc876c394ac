import { excerpt } from '../../bounds.ts'
import { ApiError } from '../../errors.ts'
import { codeOf } from '../../read/error-code.ts'
import { isObject } from '../../read/json.ts'
import { GuestError } from './requests.ts'

/** Returns the code and message that a caller gets for an error inside a sandbox, such as an error of its files. */
export function describeError(error: unknown): { code: string; message: string } {
  if (error instanceof GuestError || error instanceof ApiError) return { code: error.code, message: error.message }
  const code = codeOf(error) ?? ''
  const path = isObject(error) && typeof error.path === 'string' ? error.path : ''
  if (code === 'ENOENT') return { code: 'file_not_found', message: `No such file: ${excerpt(path)}` }
  if (code === 'ENOTDIR')
    return { code: 'file_not_found', message: `No such file: ${excerpt(path)} leads through what is no directory` }
  const where = path && `: ${excerpt(path)}`
  // Where the disk is not a file system of its own, a file may be as large as the disk.
  if (['ENOSPC', 'EDQUOT', 'EFBIG'].includes(code)) {
    return { code: 'disk_full', message: `No space is left in the sandbox${where}` }
  }
  if (code === 'EIO') return { code: 'sandbox_unavailable', message: `The disk of the sandbox has failed${where}` }
  const known = refusals[code]
  return {
    code: 'invalid_request',
    message: known ? `${known}${where}` : `The operation failed: ${code || error}`,
  }
}

const refusals: Record<string, string> = {
  EISDIR: 'It is a directory',
  EEXIST: 'It exists already',
  ENOTEMPTY: 'The directory is not empty',
  ELOOP: 'Too many links',
  ENAMETOOLONG: 'The name is too long',
  EACCES: 'Permission denied',
  EPERM: 'Not permitted',
  EROFS: 'The file system is read-only',
  EBUSY: 'It is in use',
  EINVAL: 'It is not possible',
  EXDEV: 'It cannot be moved to another file system',
  // The file is a FIFO that nobody reads, or a socket.
  ENXIO: 'Not a regular file',
  ETXTBSY: 'The file is being executed',
  EMFILE: 'The sandbox has too many files open',
  ENOMEM: 'The sandbox has no memory left',
}
