import { runProgram } from './run-program.ts'

/**
 * Removes a tree that a jail may have written. coreutils' rm follows no link, stays on the file system, and keeps up with
 * trees that change or are deeper than a path is long.
 */
export async function erase(path: string): Promise<void> {
  const remove = () => runProgram(['rm', '-rf', '--one-file-system', '--', path], 0)
  try {
    await remove()
  } catch {
    // A non-root owner needs u+rwx before rm can descend.
    await runProgram(['chmod', '-R', 'u+rwX', '--', path], 0).catch(() => {})
    await remove()
  }
}
