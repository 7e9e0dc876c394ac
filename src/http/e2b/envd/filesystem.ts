import { excerpt } from '../../../bounds.ts'
import { useSandbox } from '../../../core/sandboxes/use-sandbox.ts'
import { ApiError } from '../../../errors.ts'
import type { EnvironmentFiles } from '../../../plugin-api/index.ts'
import type { JsonObject } from '../../../read/json.ts'
import { ConnectError } from '../connect/error.ts'
import { type Entry, entryOf } from './entry.ts'
import type { Target } from './target.ts'
import { findUser, resolvePath, type SandboxUser, userNameOf } from './user.ts'

/** A sandbox's files, from a user's point of view. */
export interface FilesUse {
  files: EnvironmentFiles
  user: SandboxUser
  /** The path in a field of a message. Throws invalid_argument. */
  path(message: JsonObject, field?: string): string
}

export const MAX_DEPTH = 1000

/** Works with a sandbox's files; the sandbox stays in use meanwhile. */
export async function withFiles<Result>(
  { runtime, caller, sandboxId }: Target,
  request: Request,
  act: (use: FilesUse) => Promise<Result>,
): Promise<Result> {
  using use = await useSandbox(runtime, caller, sandboxId)
  const { files } = use.environment
  const user = await findUser(files, userNameOf(request))
  return await act({
    files,
    user,
    path(message, field = 'path') {
      const path = message[field] ?? ''
      if (typeof path !== 'string') throw new ConnectError('invalid_argument', `${field}: must be a text`)
      return resolvePath(user, path)
    },
  })
}

/** Throws not_found. */
export async function getEntry(files: EnvironmentFiles, path: string): Promise<Entry> {
  const info = await files.info(path, { details: true })
  if (!info) throw new ConnectError('not_found', `path '${excerpt(path)}' does not exist`)
  return entryOf(info)
}

export const stat = (target: Target, request: Request, message: JsonObject): Promise<object> =>
  withFiles(target, request, async ({ files, path }) => ({ entry: await getEntry(files, path(message)) }))

export const makeDir = (target: Target, request: Request, message: JsonObject): Promise<object> =>
  withFiles(target, request, async ({ files, user, path }) => {
    const wanted = path(message)
    await assertRoom(target)
    const found = await files.info(wanted)
    if (found && found.type !== 'dir')
      throw new ConnectError('invalid_argument', `path '${excerpt(wanted)}' is not a directory`)
    if (found || !(await files.makeDirectory(wanted, { owner: user.name })))
      throw new ConnectError('already_exists', `directory '${excerpt(wanted)}' already exists`)
    return { entry: await getEntry(files, wanted) }
  })

/** Throws when the server or the team has no room for more files. */
export async function assertRoom({ runtime, caller }: Target): Promise<void> {
  await runtime.diskSpace.assertEnough()
  runtime.teamLimits.assertRoom(caller.teamId, 'disk')
}

export const move = (target: Target, request: Request, message: JsonObject): Promise<object> =>
  withFiles(target, request, async ({ files, path }) => {
    const [source, destination] = [path(message, 'source'), path(message, 'destination')]
    await files.rename(source, destination)
    return { entry: await getEntry(files, destination) }
  })

/** Removing a path that does not exist succeeds. */
export const remove = (target: Target, request: Request, message: JsonObject): Promise<object> =>
  withFiles(target, request, async ({ files, path }) => {
    await files.remove(path(message)).catch(error => {
      if (!(error instanceof ApiError) || error.code !== 'file_not_found') throw error
    })
    return {}
  })

export const listDir = (target: Target, request: Request, message: JsonObject): Promise<object> =>
  withFiles(target, request, async ({ files, path }) => {
    const { depth = 1 } = message
    if (!Number.isSafeInteger(depth) || Number(depth) < 0)
      throw new ConnectError('invalid_argument', 'depth: must be a whole number from 1 on')
    const wanted = path(message)
    await assertDirectory(files, wanted)
    const found = await files.list(wanted, Math.min(Math.max(1, Number(depth)), MAX_DEPTH), { details: true })
    return { entries: found.map(entryOf) }
  })

/** Throws not_found and invalid_argument. */
export async function assertDirectory(files: EnvironmentFiles, path: string): Promise<void> {
  const { type } = await getEntry(files, path)
  if (type !== 'FILE_TYPE_DIRECTORY')
    throw new ConnectError('invalid_argument', `path '${excerpt(path)}' is not a directory`)
}
