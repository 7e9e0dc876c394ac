import { join } from 'node:path'

/** `script.ts` with all that it imports, as one text. Runs while this program is bundled. */
export function bundledScript(): string {
  const build = ['build', join(import.meta.dir, 'script.ts'), '--target=node', '--format=esm', '--minify']
  const { success, stdout, stderr } = Bun.spawnSync([process.execPath, ...build], {
    env: { ...process.env, BUN_BE_BUN: '1' },
  })
  if (!success) throw new Error(stderr.toString())
  return stdout.toString()
}
