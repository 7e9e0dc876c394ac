import { readdir, readlink, stat } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { runCommand } from '../../environment/run-command.ts'
import type { Environment } from '../../plugin-api/index.ts'
import { UsageError } from '../command-line.ts'
import { isDataDirectory } from './data-directory.ts'
import type { Copy } from './flags.ts'

/** Passes bytes through and counts them. */
type Count = (bytes: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>

/** The limit of one command line inside. */
const NAMES_AT_ONCE = 500

/**
 * Copies files and directories of this machine into the environment, with their links and executable bits. Relative
 * targets begin at `cwd`. Throws when a path does not exist, or is neither a file nor a directory.
 */
export async function copyIn(
  environment: Environment,
  files: readonly Copy[],
  cwd: string,
  count: Count,
): Promise<void> {
  const executable: string[] = []
  const bring = async (from: string, to: string): Promise<void> => {
    const { isFile, isDirectory, mode } = await getKind(from)
    if (isDirectory) return await bringDirectory(from, to)
    if (!isFile) throw new UsageError(`--file: ${from} is neither a file nor a directory`)
    await environment.files.write(to, count(Bun.file(from).stream()))
    if (mode & 0o100) executable.push(to)
  }
  const bringDirectory = async (from: string, to: string): Promise<void> => {
    await environment.files.makeDirectory(to)
    for (const entry of await readdir(from, { withFileTypes: true })) {
      // The directory may contain --data-dir: skip this sandbox, and those of other jobs.
      if (isDataDirectory(entry.name)) continue
      const [its, there] = [join(from, entry.name), posix.join(to, entry.name)]
      if (entry.isSymbolicLink()) await link(environment, await readlink(its), there)
      else if (entry.isFile() || entry.isDirectory()) await bring(its, there)
    }
  }
  for (const { from, to } of files) await bring(from, posix.resolve(cwd, to))
  for (let at = 0; at < executable.length; at += NAMES_AT_ONCE) {
    await runCommand(environment, { command: ['chmod', '755', '--', ...executable.slice(at, at + NAMES_AT_ONCE)] })
  }
}

const link = (environment: Environment, target: string, path: string) =>
  runCommand(environment, { command: ['ln', '-sfn', '--', target, path] })

async function getKind(path: string): Promise<{ isFile: boolean; isDirectory: boolean; mode: number }> {
  const found = await stat(path).catch(() => {
    throw new UsageError(`--file: there is no ${path}`)
  })
  return { isFile: found.isFile(), isDirectory: found.isDirectory(), mode: found.mode }
}
