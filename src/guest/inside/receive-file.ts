import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, readlink, realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import type { WriteDetails } from '../../plugin-api/index.ts'
import { type Call, lanes } from '../wire/call.ts'
import { GuestError } from '../wire/requests.ts'
import type { Attributes } from './attributes.ts'
import { openDraft } from './draft.ts'
import { giveTo, makeParents, openRegular } from './files.ts'

/** As many as Linux follows. */
const MAX_LINKS = 40

/**
 * Writes what the caller sends to a regular file, parents made. What was there stays until all has come and is on the
 * disk: a caller that goes, a full disk, a kill and a loss of power leave one of the two, whole. As a descriptor, the caller may
 * write the file itself before it ends the lane.
 */
export async function receiveFile(
  call: Call,
  path: string,
  { asDescriptor = false, owner, attributes = {} }: { asDescriptor?: boolean } & WriteDetails,
  openAttributes: () => Promise<Attributes>,
): Promise<{ size: number }> {
  await makeParents(dirname(path), owner)
  const target = await followLinks(path)
  const replaced = await regularAt(target)
  const draft = await openDraft(target, replaced)
  if (asDescriptor) call.answer({ descriptor: draft?.file.fd })
  if (!draft) return await receiveInPlace(call, target)
  try {
    await receive(call, draft.file)
    const { size } = await draft.file.stat()
    if (Object.keys(attributes).length > 0) (await openAttributes()).write(draft.file.fd, attributes)
    await draft.commit()
    if (owner !== undefined) await giveTo(target, owner)
    return { size }
  } finally {
    await draft.discard()
  }
}

async function receiveInPlace(call: Call, path: string): Promise<{ size: number }> {
  const file = await openRegular(path, constants.O_WRONLY | constants.O_CREAT)
  try {
    await file.truncate(0)
    return { size: await receive(call, file) }
  } finally {
    await file.close()
  }
}

/** Throws when the caller has gone before the end. */
async function receive(call: Call, file: FileHandle): Promise<number> {
  let size = 0
  let isIncomplete = false
  call.onControl = () => {
    isIncomplete = true
  }
  for (let chunk = await call.read(lanes.up); chunk; chunk = await call.read(lanes.up)) {
    await file.writeFile(chunk)
    size += chunk.byteLength
  }
  if (call.isOver || isIncomplete) throw new GuestError('invalid_request', 'The file did not come to its end.')
  return size
}

/** Where a path leads, whether something is there or not. Its directory must be there. */
async function followLinks(path: string): Promise<string> {
  let target = path
  for (let links = 0; links <= MAX_LINKS; links++) {
    target = join(await realpath(dirname(target)), basename(target))
    const link = await readlink(target).catch(() => undefined)
    if (link === undefined) return target
    target = resolve(dirname(target), link)
  }
  throw new GuestError('invalid_request', `Too many links: ${path}`)
}

async function regularAt(path: string): Promise<Stats | undefined> {
  const found = await lstat(path).catch(() => undefined)
  if (!found || found.isFile()) return found
  throw new GuestError(
    'invalid_request',
    `${found.isDirectory() ? 'It is a directory' : 'Not a regular file'}: ${path}`,
  )
}
