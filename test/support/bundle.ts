import { join } from 'node:path'

const root = join(import.meta.dir, '../..')

/** An agent as the published tool bundles it: one module, with that package left to who runs it. `zod` may be another. */
export async function bundleAgent(file: string, zod = 'zod'): Promise<Uint8Array<ArrayBuffer>> {
  const { outputs } = await Bun.build({
    entrypoints: [join(root, 'test/deploy/agents', file)],
    target: 'node',
    format: 'esm',
    external: ['@21st-sdk/agent'],
    minify: true,
    plugins: [
      {
        name: 'zod',
        setup: build => void build.onResolve({ filter: /^zod$/ }, () => ({ path: Bun.resolveSync(zod, root) })),
      },
    ],
  })
  return new Uint8Array(await outputs[0]!.arrayBuffer())
}

/** A bundle that is written as it is. */
export const bundleOf = (source: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(source))

export const noTools = bundleOf("export default { _type: 'agent', model: 'm', tools: {} }")

export interface DeployForm {
  slug?: string | undefined
  bundle?: Uint8Array<ArrayBuffer> | undefined
  templateArchive?: Uint8Array<ArrayBuffer>
  [field: string]: unknown
}

/** The form that the published tool sends: files as files, settings as JSON. */
export function deployForm({ slug = 'adder', bundle, templateArchive, mcpConfig, ...fields }: DeployForm): FormData {
  const form = new FormData()
  form.set('slug', slug)
  if (bundle) form.set('bundle', new File([bundle], 'agent-bundle.js', { type: 'application/javascript' }))
  if (templateArchive) {
    form.set('templateArchive', new File([templateArchive], 'template.tar.gz', { type: 'application/gzip' }))
  }
  if (mcpConfig) form.set('mcpConfig', new File([JSON.stringify(mcpConfig)], '.mcp.json', { type: 'application/json' }))
  for (const [name, value] of Object.entries(fields)) {
    form.set(name, typeof value === 'string' ? value : JSON.stringify(value))
  }
  form.set('agentLanguage', 'js')
  return form
}

/** The events of a deploy's answer, as the published tool reads them. */
export async function deployEvents(response: Response): Promise<any[]> {
  const text = await response.text()
  return text
    .split('\n')
    .filter(line => line.trim())
    .map(line => JSON.parse(line))
}

/** A tar.gz of these files. */
export const archiveOf = async (files: Record<string, string>): Promise<Uint8Array<ArrayBuffer>> =>
  new Uint8Array(await new Bun.Archive(files, { compress: 'gzip' }).bytes())
