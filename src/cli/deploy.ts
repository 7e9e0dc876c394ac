import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { isSlug } from '../core/agents/agent-files.ts'
import { objectOf, parseJson } from '../read/json.ts'
import { type Given, UsageError } from './command-line.ts'
import { printable } from './printable.ts'
import { createProgress, type Progress } from './progress.ts'
import { findServer, readLines, type ServerClient } from './server-client.ts'

/** The entry point of one agent's code. */
interface Source {
  slug: string
  entry: string
}

/** Bundles agents and sends them to a running server, one after the other. Throws at the first that fails. */
export async function deploy(given: Given): Promise<void> {
  const [path = ''] = given.words
  const [agent, name, engine] = [given.find('agent'), given.find('name'), given.find('engine')]
  const server = findServer(given)

  const sources = findSources(path).filter(({ slug }) => agent === undefined || slug === agent)
  if (sources.length === 0) throw new UsageError(`${path} has no agent${agent ? ` ${agent}` : ''}`)
  if (name !== undefined && sources.length > 1) throw new UsageError('--name is for one agent: choose it by --agent')
  const progress = createProgress()
  for (const { slug: ownSlug, entry } of sources) {
    const slug = name ?? ownSlug
    if (!isSlug(slug))
      throw new UsageError(`${slug}: a slug has small letters, digits and hyphens; choose one by --name`)
    progress.say(`bundling ${slug}`)
    const form = await makeForm(slug, entry).finally(() => progress.end())
    if (engine !== undefined) form.set('engine', engine)
    progress.say(`sending ${slug}, ${describeSize(form)} MB`)
    const version = await send(server, form, progress).finally(() => progress.end())
    console.log(`${slug} is deployed: version ${version}`)
  }
}

function describeSize(form: FormData): string {
  let bytes = 0
  form.forEach(each => {
    bytes += typeof each === 'string' ? each.length : (each as Blob).size
  })
  return (bytes / 1_000_000).toFixed(1)
}

/** Shows the progress that the server reports. Returns the agent's new version. */
async function send(server: ServerClient, form: FormData, progress: Progress): Promise<number> {
  for await (const line of readLines(await server.request('POST', '/v1/agents/deploy', form))) {
    const { type, message, result } = objectOf(parseJson(line)) ?? {}
    progress.end()
    if (type === 'status') {
      console.log(`  ${printable(String(message))}`)
      progress.say(printable(String(message)))
    }
    if (type === 'error') throw new Error(printable(String(message)))
    if (type === 'result') return Number(objectOf(result)?.version)
  }
  throw new Error('the server broke off')
}

const entries = ['index.ts', 'index.js', 'agent.ts', 'agent.js']

/** Finds the agents in a file, in the directory of one agent, or in one of many: `agents/SLUG/index.ts`, `agents/SLUG.ts`. */
function findSources(path: string): Source[] {
  if (!existsSync(path)) throw new UsageError(`${path}: there is no such file or directory`)
  const found = toSource(resolve(path))
  if (found) return [found]
  const inner = join(path, 'agents')
  const directory = existsSync(inner) ? inner : path
  return readdirSync(directory)
    .sort()
    .flatMap(name => toSource(resolve(directory, name)) ?? [])
}

function toSource(path: string): Source | undefined {
  if (statSync(path).isDirectory()) {
    const entry = entries.find(name => existsSync(join(path, name)))
    return entry === undefined ? undefined : { slug: basename(path), entry: join(path, entry) }
  }
  const extension = extname(path)
  return ['.ts', '.js', '.mjs'].includes(extension) ? { slug: basename(path, extension), entry: path } : undefined
}

/** Makes the upload: the bundle and, next to an `index` or `agent`, the directory `template` and `.mcp.json`. */
async function makeForm(slug: string, entry: string): Promise<FormData> {
  const form = new FormData()
  form.set('slug', slug)
  form.set('bundle', new File([await bundle(entry)], 'bundle.mjs', { type: 'application/javascript' }))
  if (!entries.includes(basename(entry))) return form
  const template = join(dirname(entry), 'template')
  if (existsSync(template)) form.set('templateArchive', new File([await archive(template)], 'template.tar.gz'))
  const mcpConfig = Bun.file(join(dirname(entry), '.mcp.json'))
  if (await mcpConfig.exists()) form.set('mcpConfig', await mcpConfig.text())
  return form
}

/** Bundles everything that the agent imports into one module, except for the package that defines agents: the runner has it. */
async function bundle(entry: string): Promise<Blob> {
  const { success, outputs, logs } = await Bun.build({
    entrypoints: [entry],
    target: 'node',
    format: 'esm',
    external: ['@21st-sdk/agent'],
    minify: true,
    throw: false,
  })
  const [output] = outputs
  if (success && output) return output
  throw new Error(`${entry} cannot be bundled:\n${logs.map(String).join('\n')}`)
}

/** Packs a directory with tar, which keeps modes and links. */
async function archive(directory: string): Promise<Blob> {
  const child = Bun.spawn(['tar', '-czf', '-', '-C', directory, '.'], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [bytes, problem] = await Promise.all([child.stdout.blob(), child.stderr.text()])
  if ((await child.exited) === 0) return bytes
  throw new Error(`${directory} cannot be archived: ${problem.trim()}`)
}
