import { readFileSync, rmSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import type { EnvironmentPaths } from './layout.ts'

/**
 * A file says that nobody uses an environment yet. A loss of power may bring it back after a create took the environment:
 * it counts only until the machine is started again.
 */

export const markSpare = (paths: EnvironmentPaths): Promise<void> => writeFile(paths.spare, bootId(), { mode: 0o600 })

export const unmarkSpare = (paths: EnvironmentPaths): void => rmSync(paths.spare, { force: true })

export const isSpare = async (paths: EnvironmentPaths): Promise<boolean> =>
  (await readFile(paths.spare, 'utf8').catch(() => '')) === bootId()

const bootId = () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')
