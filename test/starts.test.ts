import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const root = join(import.meta.dir, '..')
const transpiler = new Bun.Transpiler({ loader: 'ts' })

/*
 * How long a start takes and how much memory it keeps is decided by what it evaluates. What is missing in a list here is imported
 * where it is used, by `await import()`.
 */

/** What evaluating these files evaluates: other files, and what is no file of this repository. Not what is imported when it is used. */
function evaluated(...entries: string[]) {
  const files = new Set(entries.map(path => join(root, path)))
  const modules = new Set<string>()
  for (const file of files) {
    if (!file.endsWith('.ts')) continue
    for (const { kind, path } of transpiler.scanImports(readFileSync(file, 'utf8'))) {
      if (kind !== 'import-statement') continue
      const found = join(file, '..', path)
      if (path.startsWith('.') && existsSync(found)) files.add(found)
      else modules.add(path)
    }
  }
  return { files: [...files].map(file => relative(root, file)), modules: [...modules].sort() }
}

test('a guest starts with the files of a guest, and with few modules of Bun', () => {
  const { files, modules } = evaluated('src/main.ts', 'src/guest/inside/serve.ts')
  const rooms =
    /^src\/(main|errors|bounds|descriptor|guest\/((inside|wire)\/[\w-]+|redirect\/(addresses|original-destination|sockets))|(environment|read|async)\/[\w-]+)\.ts$|\/sudo\.sh$/
  expect(files.filter(file => !rooms.test(file))).toEqual([])
  expect(files.length).toBeGreaterThan(10)
  // Others take as long as all of these, node:net and node:stream longer than the guest itself.
  expect(modules).toEqual(['bun:ffi', 'node:fs', 'node:os', 'node:path'])
})

test('the version is printed without what a server is', () => {
  const { files, modules } = evaluated('src/main.ts', 'src/cli/command-line.ts')
  expect(
    files.filter(file => /^(plugins|src\/(db|runs|http|guest|stream|app|core\/(?!config|limits\/parse)))/.test(file)),
  ).toEqual([])
  expect(modules).toEqual(['fastest-levenshtein', 'node:os', 'node:path', 'node:util'])
})

test('a server starts without packages that only some requests need', () => {
  const plugins = ['nsjail', 'docker', 'e2b', 'echo', 'ai-sdk', 'agent-programs'].map(
    name => `plugins/${name}/index.ts`,
  )
  const { files, modules } = evaluated('src/main.ts', 'src/cli/command-line.ts', 'src/cli/serve.ts', ...plugins)
  expect(files.length).toBeGreaterThan(300)
  const packages = modules.filter(name => !/^(node|bun):/.test(name))
  expect(packages).toEqual(['@sinclair/typebox', '@sinclair/typebox/value', 'elysia', 'fastest-levenshtein'])
  // Each takes milliseconds, and stays in memory.
  const slow = ['node:zlib', 'node:http', 'node:https', 'node:http2', 'node:child_process', 'node:worker_threads']
  expect(modules.filter(name => slow.includes(name))).toEqual([])
})
