import { posix } from 'node:path'
import { permissionsOf } from '../../src/environment/permissions.ts'
import { type CommandResult, runCommand } from '../../src/environment/run-command.ts'
import { ApiError } from '../../src/errors.ts'
import { chunksUntil } from '../../src/guest/host/chunks-until.ts'
import type { Environment, EnvironmentFiles, FileInfo } from '../../src/plugin-api/index.ts'
import type { Envd } from './envd.ts'
import commitDraft from './scripts/commit-draft.sh' with { type: 'text' }

/** A listing longer than this is refused rather than cut. */
const MAX_ENTRIES = 10_000
const MAX_LISTING_BYTES = 8 * 1024 * 1024

/** Longer files are sent in parts: each part can be repeated, and after a refused part the rest is not sent. */
const PART_BYTES = 8 * 1024 * 1024

/** The exit codes of the scripts below. */
const MISSING = 44
const REFUSED = 45

const missing = `[[ -e $1 || -L $1 ]] || exit ${MISSING}`

/** Prints nine fields for each entry. Size and mode of a link are those of its target. */
const FIELDS = String.raw`%p\0%y\0%Y\0%u\0%g\0%T@\0%l\0`
const DESCRIBE = String.raw`-printf '${FIELDS}' \( -type l -exec stat -L --printf '%s\0%a\0' {} \; -o -printf '%s\0%m\0' \)`

/** Drafts are on the same disk as all files, so a move to the final path is atomic. */
const DRAFTS = '/var/tmp/.threadbox-drafts'

const scripts = {
  /** Prints the size of a readable file. */
  readable: `[[ -e $1 ]] || exit ${MISSING}; [[ -f $1 ]] || { echo "Not a regular file: $1"; exit ${REFUSED}; }; stat -L -c %s -- "$1"`,
  /** Deletes drafts that are older than a day: a server that was killed leaves them. */
  writable: `mkdir -p -- "\${1%/*}/" || exit ${REFUSED}; [[ ! -e $1 || -f $1 ]] || { echo "Not a regular file: $1"; exit ${REFUSED}; }; find ${DRAFTS} -mindepth 1 -mmin +1440 -delete 2>/dev/null; :`,
  append: `cat -- "$2" >>"$1" || exit ${REFUSED}`,
  commit: commitDraft,
  discard: 'rm -f -- "$@"',
  info: `find -P "$1" -maxdepth 0 ${DESCRIBE}; :`,
  list: `${missing}; [[ -d $1 ]] || { echo "Not a directory: $1"; exit ${REFUSED}; }; find -H "$1" -mindepth 1 -maxdepth "$2" ${DESCRIBE}; :`,
  makeDirectory: `[[ -d $1 ]] && { echo there; exit; }; mkdir -p -- "$1" || exit ${REFUSED}`,
  rename: `${missing}; mkdir -p -- "\${2%/*}/" && mv -T -- "$1" "$2" || exit ${REFUSED}`,
  remove: `${missing}; rm -rf -- "$1" || exit ${REFUSED}`,
}

/** File operations by programs that every Debian has. Contents of any size go through the daemon's file API. */
export function filesInside(
  use: <T>(action: (envd: Envd) => Promise<T>) => Promise<T>,
  spawn: Environment['spawn'],
): EnvironmentFiles {
  const run = async (name: keyof typeof scripts, ...args: string[]): Promise<CommandResult> => {
    const command = ['/bin/bash', '-c', scripts[name], 'threadbox-files', ...args]
    const result = await runCommand({ spawn }, { command, cwd: '/', maxOutputBytes: MAX_LISTING_BYTES })
    const { exitCode, stdout, stderr } = result
    const path = args[0] ?? ''
    if (exitCode === MISSING) throw new ApiError('file_not_found', `No such file: ${path}`)
    if (exitCode === 0) return result
    const message = (stdout.trim() || stderr.trim()).slice(0, 1000)
    if (/No space left on device/.test(message)) throw new ApiError('disk_full', 'No space is left in the sandbox.')
    // A directory of the path is missing.
    if (/No such file or directory/.test(message)) throw new ApiError('file_not_found', `No such file: ${path}`)
    throw new ApiError('invalid_request', message || `The operation failed: ${path}`)
  }

  /** Appends through a file of its own: a part that is sent twice after a lost answer must not appear twice. */
  const append = async (draft: string, part: string, bytes: Uint8Array, signal: AbortSignal | undefined) => {
    await use(envd => envd.upload(part, bytes, signal))
    await run('append', draft, part)
  }

  return {
    async read(path, signal) {
      const { stdout } = await run('readable', path)
      // Files of /proc and /sys report a size of 0.
      const found = Number(stdout)
      if (found > 0) {
        const { size = found, body } = await use(envd => envd.download(path, signal))
        return { size, body }
      }
      const child = await spawn({ command: ['cat', '--', path], cwd: '/', ...(signal && { signal }) })
      void child.stderr.cancel()
      return { size: 0, body: child.stdout }
    },
    async write(path, body, signal) {
      await run('writable', path)
      const draft = `${DRAFTS}/${crypto.randomUUID()}`
      const part = `${draft}-part`
      let size = 0
      try {
        for await (const bytes of partsOf(body, signal)) {
          signal?.throwIfAborted()
          if (size === 0) await use(envd => envd.upload(draft, bytes, signal))
          else await append(draft, part, bytes, signal)
          size += bytes.byteLength
        }
        signal?.throwIfAborted()
        await run('commit', path, draft)
      } catch (error) {
        await run('discard', draft, part).catch(() => {})
        throw error
      }
      if (size > PART_BYTES) await run('discard', part)
      return size
    },
    async info(path) {
      const [info] = parseInfos((await run('info', path)).stdout)
      return info
    },
    async list(path, depth = 1) {
      const { stdout, truncated } = await run('list', path, String(depth))
      const found = truncated ? [] : parseInfos(stdout)
      if (truncated || found.length > MAX_ENTRIES) {
        throw new ApiError('invalid_request', `The listing has more than ${MAX_ENTRIES} entries.`)
      }
      return found.sort((a, b) => (a.path < b.path ? -1 : 1))
    },
    makeDirectory: async path => (await run('makeDirectory', path)).stdout === '',
    async rename(from, to) {
      await run('rename', from, to)
    },
    async remove(path) {
      if (posix.normalize(path) === '/') throw new ApiError('invalid_request', 'The root cannot be removed.')
      await run('remove', path)
    },
  }
}

/** At least one, so that an empty file is made too. Leaving the loop cancels the stream. */
async function* partsOf(
  body: Uint8Array | ReadableStream<Uint8Array>,
  signal = new AbortController().signal,
): AsyncGenerator<Uint8Array> {
  if (body instanceof Uint8Array) return yield body
  let chunks: Uint8Array[] = []
  let held = 0
  let isFirst = true
  for await (const chunk of chunksUntil(body, signal)) {
    chunks.push(chunk)
    held += chunk.byteLength
    if (held < PART_BYTES) continue
    yield Buffer.concat(chunks)
    chunks = []
    held = 0
    isFirst = false
  }
  if (held > 0 || isFirst) yield Buffer.concat(chunks)
}

function parseInfos(text: string): FileInfo[] {
  const fields = text.split('\0')
  const found: FileInfo[] = []
  for (let at = 0; at + 9 <= fields.length; at += 9) {
    const [path = '', own, led, owner = '', group = '', time, link = '', size, mode] = fields.slice(at, at + 9)
    const bits = Number.parseInt(mode ?? '0', 8)
    found.push({
      name: posix.basename(path),
      path,
      type: led === 'd' ? 'dir' : 'file',
      size: Number(size),
      mode: bits,
      permissions: permissionsOf(own === 'd' || own === 'l' ? own : '-', own === 'l' ? 0o777 : bits),
      owner,
      group,
      modifiedTime: new Date(Number(time) * 1000).toISOString(),
      ...(own === 'l' && { symlinkTarget: link }),
    })
  }
  return found
}
