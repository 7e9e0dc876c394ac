import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Returns `thread.ts` as JavaScript. It runs while this program is bundled. */
export function threadScript(): string {
  const source = readFileSync(join(import.meta.dir, 'thread.ts'), 'utf8')
  return new Bun.Transpiler({ loader: 'ts', target: 'bun' }).transformSync(source)
}
