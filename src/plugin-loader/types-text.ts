import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Makes the declaration of the module `threadbox` for an editor. This is a macro: it runs when the executable is built,
 * because the sources are not there later.
 */
export function typesText(): string {
  const parts = readdirSync(join(import.meta.dir, '../plugin-api')).sort()
  const sources = [...parts.map(part => `../plugin-api/${part}`), '../plugin-suite/scene.ts', './helpers.ts']
  const texts = sources.map(file => readFileSync(join(import.meta.dir, file), 'utf8'))
  const body = texts
    .join('\n')
    .replace(/^(import type|export type \*) .*\n+/gm, '')
    .replace(/^export declare /gm, 'export ')
  const lines = ["import type { Duplex } from 'node:stream'", '', ...body.trimEnd().split('\n')]
  return [
    '// What plugins of threadbox import. From: threadbox plugin types',
    "declare module 'threadbox' {",
    ...lines.map(line => (line ? `  ${line}` : '')),
    '}\n',
  ].join('\n')
}
