import { posix } from 'node:path'
import { readTar } from '../../src/disk/read-tar.ts'
import { objectOf, objectsOf, parseJson } from '../../src/read/json.ts'
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

/** The members by which an engine finds what an archive has, and its names. */
const lists = ['manifest.json', 'index.json', 'repositories']
const MAX_LIST_BYTES = 16 * 1024 * 1024

/**
 * Reads all of an archive as `docker save` makes it. Throws when the image has a name, and when the archive lacks anything that its
 * list names.
 */
export async function readImage(path: string): Promise<void> {
  const present = new Set<string>()
  let list: unknown
  for await (const { name: given, type, body } of readTar(Bun.file(path).stream())) {
    const name = given.replace(/^\.\//, '')
    present.add(name)
    // By whatever way: an engine follows `x/../`, and links to directories, as it unpacks.
    const last = posix.basename(name)
    if (!lists.includes(last)) continue
    if (type !== 'file') throw new Error(`the image of the backup has ${JSON.stringify(given)}, which is no file`)
    const read = parseJson(await readList(body))
    if (read === undefined) throw new Error(`the image of the backup has ${JSON.stringify(given)}, which is not JSON`)
    if (last === 'repositories' || hasName(read)) {
      throw new Error('the image of the backup has a name, which none of threadbox has')
    }
    if (name === 'manifest.json') list = read
  }
  const [first] = objectsOf(list)
  if (!first) throw new Error('the image of the backup has no manifest.json')
  const layers = Array.isArray(first.Layers) ? first.Layers : []
  const missing = [first.Config, ...layers].map(String).find(name => !present.has(name))
  if (missing !== undefined) throw new Error(`the image of the backup lacks ${missing}`)
}

async function readList(body: AsyncIterable<Buffer>): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of body) {
    bytes += piece.byteLength
    if (bytes > MAX_LIST_BYTES) throw new Error('the image of the backup has a list that is too long')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

/** Whether a list names an image, at any depth. */
function hasName(list: unknown): boolean {
  if (Array.isArray(list)) return list.some(hasName)
  return Object.entries(objectOf(list) ?? {}).some(([key, value]) => {
    if (/image\.name|ref\.name/.test(key)) return true
    // Engines take the names of fields in small letters too, and by Unicode's rules for these.
    const isTags = key.toUpperCase() === 'REPOTAGS'
    return isTags ? value !== null && !(Array.isArray(value) && value.length === 0) : hasName(value)
  })
}
