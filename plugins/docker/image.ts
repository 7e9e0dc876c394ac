import { ApiError, messageOf } from '../../src/errors.ts'
import type { EnvironmentSpec } from '../../src/plugin-api/index.ts'
import { objectOf, parseJson } from '../../src/read/json.ts'
import type { DockerEngine } from './engine.ts'
import { EngineLost, isMissing } from './failure.ts'

export interface Image {
  id: string
  /** Variables that it sets. */
  env: Record<string, string>
  /** Directories that get a volume of their own, outside of any disk limit. */
  volumes: string[]
}

/** References as registries have them: `debian`, `ghcr.io/a/b:tag`, `localhost:5000/a@sha256:…`. */
const reference = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}$/

/** Gets images; concurrent calls for one image pull it once. */
export interface Images {
  /** Pulls an image that the engine lacks. Throws invalid_request when no such image exists, sandbox_unavailable when the pull fails. */
  get(name: string, onProgress?: OnProgress): Promise<Image>
}

type OnProgress = NonNullable<EnvironmentSpec['onProgress']>

/** A pull that is under way, and the callers that follow its progress. */
interface Pull {
  done: Promise<void>
  watchers: Set<OnProgress>
}

/** `signal` ends pulls. */
export function createImages(engine: DockerEngine, log: (line: string) => void, signal: AbortSignal): Images {
  const pulls = new Map<string, Pull>()
  const begin = (name: string): Pull => {
    const watchers = new Set<OnProgress>()
    const tell: OnProgress = progress => watchers.forEach(watch => void watch(progress))
    return { watchers, done: pull(engine, name, { log, signal, tell }).finally(() => pulls.delete(name)) }
  }
  const pullOnce = async (name: string, onProgress?: OnProgress) => {
    const pulling = pulls.get(name) ?? begin(name)
    pulls.set(name, pulling)
    if (onProgress) pulling.watchers.add(onProgress)
    await pulling.done
  }

  return {
    async get(name, onProgress) {
      if (!reference.test(name) || name.includes('..'))
        throw new ApiError('invalid_request', `${name} is not a valid name of an image.`)
      const present = await findImage(engine, name)
      if (present) return present
      await pullOnce(name, onProgress)
      const pulled = await findImage(engine, name)
      if (!pulled)
        throw new ApiError('sandbox_unavailable', `The image ${name} was pulled, but the engine does not list it.`)
      return pulled
    },
  }
}

export async function findImage(engine: DockerEngine, name: string): Promise<Image | undefined> {
  try {
    return toImage(await engine.call('GET', `/images/${name}/json`))
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

function toImage(answer: unknown): Image {
  const { Id, Config } = objectOf(answer) ?? {}
  const { Env, Volumes } = objectOf(Config) ?? {}
  if (typeof Id !== 'string') throw new Error('the engine describes an image without an id')
  const pairs = (Array.isArray(Env) ? Env : []).map(each => /^([^=]+)=(.*)$/s.exec(String(each)))
  const named = pairs.flatMap(pair => (pair ? [[pair[1] ?? '', pair[2] ?? ''] as const] : []))
  // An image that was committed from a sandbox has its guest's variables.
  const env = Object.fromEntries(named.filter(([name]) => !name.startsWith('THREADBOX_')))
  return { id: Id, env, volumes: Object.keys(objectOf(Volumes) ?? {}) }
}

const LOG_EVERY_MS = 5000
const TELL_EVERY_MS = 250
const MAX_LINE_LENGTH = 64 * 1024
const MAX_LAYERS = 512

/** Logs its progress every five seconds. */
async function pull(
  engine: DockerEngine,
  name: string,
  { log, signal, tell }: { log(line: string): void; signal: AbortSignal; tell: OnProgress },
): Promise<void> {
  const message = `pulling the image ${name}`
  const layers = new Map<string, { current: number; total: number }>()
  const sum = (field: 'current' | 'total') => [...layers.values()].reduce((all, size) => all + size[field], 0)
  const toMb = (bytes: number) => Math.round(bytes / 1e6)
  const describe = () => (layers.size > 0 ? `: ${toMb(sum('current'))} of ${toMb(sum('total'))} MB` : '')
  let toldAt = 0
  log(message)
  tell({ message })
  const timer = setInterval(() => log(`${message}${describe()}`), LOG_EVERY_MS)
  try {
    const lines = readLines(await engine.stream('POST', '/images/create', { query: toPullQuery(name), signal }))
    for await (const line of lines) {
      const { error, id, status, progressDetail } = objectOf(parseJson(line)) ?? {}
      if (error !== undefined) throw new Error(String(error))
      const { current, total } = objectOf(progressDetail) ?? {}
      if (status !== 'Downloading' || typeof current !== 'number' || typeof total !== 'number') continue
      if (layers.size < MAX_LAYERS || layers.has(String(id))) layers.set(String(id), { current, total })
      if (performance.now() - toldAt < TELL_EVERY_MS) continue
      toldAt = performance.now()
      tell({ message, doneBytes: sum('current'), totalBytes: sum('total') })
    }
    log(`pulled the image ${name}`)
  } catch (error) {
    if (error instanceof EngineLost) throw error
    const reason = messageOf(error).slice(0, 1000)
    log(`the image ${name} could not be pulled: ${reason}`)
    const isUnknown = /not found|manifest unknown|does not exist|access denied|unauthorized|invalid reference/i.test(
      reason,
    )
    throw new ApiError(
      isUnknown ? 'invalid_request' : 'sandbox_unavailable',
      `The image ${name} cannot be had: ${reason}`,
    )
  } finally {
    clearInterval(timer)
  }
}

/** Without a tag an engine would pull every tag of the repository. */
function toPullQuery(name: string): Record<string, string> {
  const [tagged = '', digest] = name.split('@')
  const [, repository = tagged, tag = 'latest'] = /^(.+):([^/:]+)$/.exec(tagged) ?? []
  return { fromImage: repository, tag: digest ?? tag }
}

async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
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
