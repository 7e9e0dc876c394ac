// Tries both code interpreters and others' programs, as they come from npm and PyPI, against the executable, and writes their
// tables of docs/e2b.md. Run by scripts/e2b-matrix (as root; builds first: scripts/build).
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkTable } from '../../test/e2b/page.ts'
import { mirrorFlags, mirrors } from '../../test/support/registries.ts'
import { command, startServer } from '../../test/support/server.ts'

const scratch = mkdtempSync(join(tmpdir(), 'threadbox-e2b-'))
const python = join(scratch, 'venv/bin/python')
const packages = ['e2b', 'e2b-code-interpreter', 'smolagents[e2b]', 'langchain-e2b', 'openai-agents']
const minutes = 60_000

const server = await startServer({ flags: mirrorFlags })
const made = await command(['keys', 'create', '--e2b', '--quiet', '--data-dir', server.dataDirectory])
const variables = { E2B_API_KEY: made.stdout.trim(), E2B_API_URL: server.url, E2B_SANDBOX_URL: server.url }

/** Runs a program of this directory. Returns the rows that it prints: a version, what was tried, and the result. */
async function rows(...words: string[]): Promise<[version: string, name: string, said: string][]> {
  const lines = await run(...words)
  return lines
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
}

async function run(...words: string[]): Promise<string> {
  const env = { ...process.env, ...variables, SMOLAGENTS_TELEMETRY: '0', OPENAI_AGENTS_DISABLE_TRACING: '1' }
  const child = Bun.spawn(words, { cwd: import.meta.dir, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const [stdout, code] = await Promise.all([child.stdout.text(), child.exited])
  if (code !== 0) throw new Error(`${words.join(' ')}: ${stdout}`)
  return stdout
}

/** Writes a table with these columns and a row for each thing that was tried. */
async function write(name: string, head: string, columns: Awaited<ReturnType<typeof rows>>[]): Promise<void> {
  const lines = (columns[0] ?? []).map(([, tried], at) => [tried, ...columns.map(column => column[at]?.[2] ?? '')])
  await checkTable(name, [[head, ...columns.map(([first]) => first?.[0] ?? '')], ...lines])
}

beforeAll(async () => {
  await run('python3', '-m', 'venv', join(scratch, 'venv'))
  await run(python, '-m', 'pip', 'install', '-q', ...packages)
  await run(python, 'template.py', ...mirrors)
}, 20 * minutes)

afterAll(async () => {
  await server.close()
  rmSync(scratch, { recursive: true })
}, minutes)

test(
  'the code interpreters',
  async () => {
    const columns = [await rows(process.execPath, 'interpreter.ts'), await rows(python, 'matrix.py', 'interpreter')]
    await write('interpreters', 'what', columns)
    expect(columns.flat().filter(([, , said]) => said !== 'works')).toEqual([])
  },
  5 * minutes,
)

test(
  'programs of others',
  async () => {
    const column = await rows(python, 'programs.py')
    await write('programs', 'program', [column.map(([version, name, said]) => ['', `${name} ${version}`, said])])
    expect(column.filter(([, , said]) => said !== 'works')).toEqual([])
  },
  5 * minutes,
)
