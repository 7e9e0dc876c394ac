import { dirname, join } from 'node:path'

/** The package of the page's hook, by the major version of `ai`. Each brings its own `ai`. */
const packages = { 'ai 7': '@ai-sdk/react', 'ai 6': 'ai-react-6', 'ai 5': 'ai-react-5' }
export type AiVersion = keyof typeof packages
export const aiVersions = Object.keys(packages) as AiVersion[]

/** What the page asks for by the field `stream`: what it needs, and what its version can read. */
export const aiProfiles: readonly [AiVersion, 'contract' | 'full' | 'ai-7'][] = [
  ['ai 7', 'contract'],
  ['ai 7', 'ai-7'],
  ['ai 6', 'contract'],
  ['ai 6', 'full'],
  ['ai 5', 'contract'],
]

const html = (script: string) => `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8" /><title>A chat</title><link rel="icon" href="data:," /></head>
  <body><div id="root"></div><script type="module" src="${script}"></script></body>
</html>
`

/** A web server with the page `page.tsx` for each version of `ai`, on any free port. */
export async function servePages() {
  const addressOf = (version: AiVersion) => `/${version.replace(' ', '-')}`
  const answers = new Map<string, { type: string; text: string }>()
  for (const version of aiVersions) {
    const script = `${addressOf(version)}.js`
    answers.set(addressOf(version), { type: 'text/html', text: html(script) })
    answers.set(script, { type: 'text/javascript', text: await build(packages[version]) })
  }
  const web = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const { type, text } = answers.get(new URL(request.url).pathname) ?? { type: 'text/plain', text: 'no such page' }
      return new Response(text, { headers: { 'content-type': `${type}; charset=utf-8` } })
    },
  })
  return { urlOf: (version: AiVersion) => new URL(addressOf(version), web.url).href, stop: () => web.stop(true) }
}

/** The page's script, with `@ai-sdk/react` and `ai` of the version. */
async function build(hookPackage: string): Promise<string> {
  const hook = Bun.resolveSync(hookPackage, import.meta.dir)
  const paths = new Map([
    ['@ai-sdk/react', hook],
    ['ai', Bun.resolveSync('ai', dirname(hook))],
  ])
  const { outputs } = await Bun.build({
    entrypoints: [join(import.meta.dir, 'page.tsx')],
    target: 'browser',
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [
      {
        name: 'one version of ai',
        setup(build) {
          build.onResolve({ filter: /^(ai|@ai-sdk\/react)$/ }, ({ path, importer }) => {
            const found = importer.endsWith('/page.tsx') ? paths.get(path) : undefined
            return found === undefined ? undefined : { path: found }
          })
        },
      },
    ],
  })
  return outputs[0]!.text()
}
