import { ApiError, messageOf } from '../../src/errors.ts'
import { objectOf, parseJson } from '../../src/read/json.ts'
import type { DockerEngine } from './engine.ts'
import { EngineLost, isMissing } from './failure.ts'

export interface Image {
  id: string
  /** What it sets for all that runs in it. */
  env: Record<string, string>
  /** Directories that get a volume of their own, which no disk limit holds. */
  volumes: string[]
}

/** As registries have them: `debian`, `ghcr.io/a/b:tag`, `localhost:5000/a@sha256:…`. */
const reference = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}$/

/** Brings images; one that is being pulled is pulled once. */
export interface Images {
  /** Throws invalid_request when there is no such image, sandbox_unavailable when it cannot be had now. */
  get(name: string): Promise<Image>
}

/** `signal` ends pulls. */
export function createImages(engine: DockerEngine, log: (line: string) => void, signal: AbortSignal): Images {
  const pulls = new Map<string, Promise<void>>()
  const pullOnce = (name: string) => {
    const pulling = pulls.get(name) ?? pull(engine, name, log, signal).finally(() => pulls.delete(name))
    pulls.set(name, pulling)
    return pulling
  }

  return {
    async get(name) {
      if (!reference.test(name) || name.includes('..'))
        throw new ApiError('invalid_request', `No image can be named ${name}.`)
      const present = await findImage(engine, name)
      if (present) return present
      await pullOnce(name)
      const pulled = await findImage(engine, name)
      if (!pulled) throw new ApiError('sandbox_unavailable', `The image ${name} was pulled and is not there.`)
      return pulled
    },
  }
}

export async function findImage(engine: DockerEngine, name: string): Promise<Image | undefined> {
  try {
    return imageOf(await engine.call('GET', `/images/${name}/json`))
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

function imageOf(answer: unknown): Image {
  const { Id, Config } = objectOf(answer) ?? {}
  const { Env, Volumes } = objectOf(Config) ?? {}
  if (typeof Id !== 'string') throw new Error('the engine describes an image without an id')
  const pairs = (Array.isArray(Env) ? Env : []).map(each => /^([^=]+)=(.*)$/s.exec(String(each)))
  const named = pairs.flatMap(pair => (pair ? [[pair[1] ?? '', pair[2] ?? ''] as const] : []))
  // An image that was made of a sandbox has those of its guest.
  const env = Object.fromEntries(named.filter(([name]) => !name.startsWith('THREADBOX_')))
  return { id: Id, env, volumes: Object.keys(objectOf(Volumes) ?? {}) }
}

const TELL_EVERY_MS = 5000
const MAX_LINE_LENGTH = 64 * 1024
const MAX_LAYERS = 512

/** Tells of its progress a line every five seconds. */
async function pull(
  engine: DockerEngine,
  name: string,
  log: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const layers = new Map<string, { current: number; total: number }>()
  const describe = () => {
    const sizes = [...layers.values()]
    const sum = (field: 'current' | 'total') => Math.round(sizes.reduce((all, size) => all + size[field], 0) / 1e6)
    return sizes.length > 0 ? `: ${sum('current')} of ${sum('total')} MB` : ''
  }
  log(`pulling the image ${name}`)
  const timer = setInterval(() => log(`pulling the image ${name}${describe()}`), TELL_EVERY_MS)
  try {
    const lines = linesOf(await engine.stream('POST', '/images/create', { query: whatToPull(name), signal }))
    for await (const line of lines) {
      const { error, id, status, progressDetail } = objectOf(parseJson(line)) ?? {}
      if (error !== undefined) throw new Error(String(error))
      const { current, total } = objectOf(progressDetail) ?? {}
      if (status !== 'Downloading' || typeof current !== 'number' || typeof total !== 'number') continue
      if (layers.size < MAX_LAYERS || layers.has(String(id))) layers.set(String(id), { current, total })
    }
    log(`pulled the image ${name}`)
  } catch (error) {
    if (error instanceof EngineLost) throw error
    const message = messageOf(error).slice(0, 1000)
    log(`the image ${name} could not be pulled: ${message}`)
    const isNone = /not found|manifest unknown|does not exist|access denied|unauthorized|invalid reference/i.test(
      message,
    )
    throw new ApiError(
      isNone ? 'invalid_request' : 'sandbox_unavailable',
      `The image ${name} cannot be had: ${message}`,
    )
  } finally {
    clearInterval(timer)
  }
}

/** Without a tag an engine would pull all that there are. */
function whatToPull(name: string): Record<string, string> {
  const [tagged = '', digest] = name.split('@')
  const [, repository = tagged, tag = 'latest'] = /^(.+):([^/:]+)$/.exec(tagged) ?? []
  return { fromImage: repository, tag: digest ?? tag }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MAX_LINE_LENGTH) throw new Error('the engine sends a line without an end')
    yield* lines
  }
  yield rest
}
