import { readTar } from '../../src/disk/read-tar.ts'
import { objectsOf, parseJson } from '../../src/read/json.ts'
import type { DockerEngine } from './engine.ts'

/** Gives the engine an image of a backup. Resolves to its id. Throws when it has a name, which would be taken from the engine's own. */
export async function loadImage(engine: DockerEngine, path: string): Promise<string> {
  await readImage(path)
  const archive = Bun.file(path).stream()
  const answer = await engine.stream('POST', '/images/load', { archive, query: { quiet: 'true' } })
  const text = await new Response(answer).text()
  const [, id] = /Loaded image(?: ID)?: (sha256:[0-9a-f]{64})/.exec(text) ?? []
  if (id === undefined) throw new Error(`the engine did not load the image: ${text.slice(0, 500)}`)
  return id
}

/**
 * Reads all of an archive as `docker save` makes it. Throws when the image has a name, and when the archive lacks anything that its
 * list names.
 */
export async function readImage(path: string): Promise<void> {
  const present = new Set<string>()
  let list: unknown
  for await (const { name: given, body } of readTar(Bun.file(path).stream())) {
    const name = given.replace(/^\.\//, '')
    present.add(name)
    if (!['manifest.json', 'index.json', 'repositories'].includes(name)) continue
    const pieces: Buffer[] = []
    for await (const piece of body) pieces.push(piece)
    const text = Buffer.concat(pieces).toString('utf8')
    if (name === 'repositories' || /"RepoTags":\s*\[\s*"|image\.name|ref\.name/.test(text)) {
      throw new Error('the image of the backup has a name, which none of threadbox has')
    }
    if (name === 'manifest.json') list = parseJson(text)
  }
  const [first] = objectsOf(list)
  if (!first) throw new Error('the image of the backup has no manifest.json')
  const layers = Array.isArray(first.Layers) ? first.Layers : []
  const missing = [first.Config, ...layers].map(String).find(name => !present.has(name))
  if (missing !== undefined) throw new Error(`the image of the backup lacks ${missing}`)
}
