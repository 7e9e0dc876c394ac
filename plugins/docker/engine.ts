import { messageOf } from '../../src/errors.ts'
import { readBytes } from '../../src/read/bytes.ts'
import { codeOf } from '../../src/read/error-code.ts'
import { objectOf, parseJson } from '../../src/read/json.ts'
import { type Address, describeAddress } from './address.ts'
import type { ProcessStream } from './demultiplex.ts'
import { EngineError, EngineLost } from './failure.ts'
import { hijack } from './hijack.ts'

export interface Request {
  query?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  body?: unknown
  /** Sent as a tar archive. */
  archive?: ReadableStream<Uint8Array>
  timeoutMs?: number
  signal?: AbortSignal
}

/** The Docker Engine API, https://docs.docker.com/reference/api/engine/ */
export interface DockerEngine {
  readonly address: string
  /** The engine's own description. */
  version(): Promise<EngineVersion>
  /** One call and its JSON answer; undefined when there is none. Throws EngineError and EngineLost. */
  call(method: string, path: string, request?: Request): Promise<unknown>
  /** A call whose answer is streamed; it may take any time. */
  stream(method: string, path: string, request?: Request): Promise<ReadableStream<Uint8Array>>
  /** A POST that turns its connection into the stdin and stdout of what it starts. */
  hijack(path: string, body: unknown): Promise<ProcessStream>
}

export interface EngineVersion {
  /** Version of the API that is spoken with it. */
  api: string
  name: string
  /** Names as Go has them. */
  os: string
  architecture: string
}

/** Minor versions of the API 1: the oldest that this works with, which Docker 20.10 has, and the newest that it was written for. */
const OLDEST_API = 41
const NEWEST_API = 51

/** Generous, because an engine waits for its disk. */
const ANSWERS_WITHIN_MS = 120_000
const MAX_ANSWER_BYTES = 16 * 1024 * 1024
const MAX_MESSAGE_LENGTH = 2000

/**
 * A client of the engine at an address, which the first call looks up.
 *
 * Over 100 lines: one way to ask the engine, and the calls over it.
 */
export function createEngine(findAddress: () => Address): DockerEngine {
  let found: Address | undefined
  let known: Promise<EngineVersion> | undefined

  const getAddress = (): Address => {
    try {
      found ??= findAddress()
      return found
    } catch (error) {
      throw new EngineLost(`The Docker engine cannot be found: ${messageOf(error)}`)
    }
  }

  const ask = async (
    method: string,
    path: string,
    { query, body, archive, timeoutMs, signal }: Request,
  ): Promise<Response> => {
    const address = getAddress()
    const url = `${toOrigin(address)}${path}${query ? `?${new URLSearchParams(query)}` : ''}`
    try {
      return await fetch(url, {
        method,
        // A connection that is kept may be to an engine that has restarted.
        keepalive: false,
        timeout: false,
        signal: signal ?? (timeoutMs === undefined ? null : AbortSignal.timeout(timeoutMs)),
        ...(body !== undefined && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
        ...(archive && { body: archive, headers: { 'content-type': 'application/x-tar' } }),
        ...('socket' in address && { unix: address.socket }),
        ...('tls' in address && { tls: address.tls }),
      } as RequestInit)
    } catch (error) {
      known = undefined
      throw new EngineLost(`The Docker engine at ${describeAddress(address)} does not answer: ${toReason(error)}`)
    }
  }

  const read = async (response: Response): Promise<string> => {
    try {
      const bytes = await readBytes(response.body, MAX_ANSWER_BYTES)
      if (!bytes) throw new Error('its answer is too long')
      return bytes.toString('utf8')
    } catch (error) {
      throw new EngineLost(`The Docker engine broke off: ${toReason(error)}`)
    }
  }

  const refuse = async (response: Response): Promise<never> => {
    const text = await read(response)
    const message = objectOf(parseJson(text))?.message
    throw new EngineError(response.status, String(message ?? text).slice(0, MAX_MESSAGE_LENGTH))
  }

  const askVersion = async (): Promise<EngineVersion> => {
    const response = await ask('GET', '/version', { timeoutMs: ANSWERS_WITHIN_MS })
    if (!response.ok) return refuse(response)
    const { ApiVersion, MinAPIVersion, Version, Os, Arch } = objectOf(parseJson(await read(response))) ?? {}
    const [newest, oldest] = [parseMinorVersion(ApiVersion), parseMinorVersion(MinAPIVersion) ?? OLDEST_API]
    if (newest === undefined) throw new EngineError(500, 'this is not a Docker engine')
    const api = Math.min(newest, NEWEST_API)
    if (api < Math.max(oldest, OLDEST_API)) {
      throw new EngineError(
        400,
        `the engine speaks the API 1.${oldest} to 1.${newest}, not 1.${OLDEST_API} to 1.${NEWEST_API}`,
      )
    }
    return { api: `1.${api}`, name: `Docker ${Version}`, os: String(Os), architecture: String(Arch) }
  }

  const version = () => {
    known ??= askVersion().catch(error => {
      known = undefined
      throw error
    })
    return known
  }

  const versioned = async (path: string) => `/v${(await version()).api}${path}`

  const succeed = async (method: string, path: string, request: Request) => {
    const response = await ask(method, await versioned(path), request)
    return response.ok || response.status === 304 ? response : refuse(response)
  }

  return {
    get address() {
      return describeAddress(getAddress())
    },
    version,
    async call(method, path, request = {}) {
      const response = await succeed(method, path, { timeoutMs: ANSWERS_WITHIN_MS, ...request })
      return parseJson(await read(response))
    },
    async stream(method, path, request = {}) {
      const { body } = await succeed(method, path, request)
      return body ?? new ReadableStream({ start: controller => controller.close() })
    },
    async hijack(path, body) {
      return await hijack(getAddress(), await versioned(path), body)
    },
  }
}

/** The code, because Bun's messages suggest typing errors. */
const toReason = (error: unknown) => codeOf(error) ?? messageOf(error)

function toOrigin(address: Address): string {
  if ('socket' in address) return 'http://docker'
  const { host, port, tls } = address
  return `http${tls ? 's' : ''}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

function parseMinorVersion(version: unknown): number | undefined {
  const minor = /^1\.(\d+)$/.exec(String(version))?.[1]
  return minor === undefined ? undefined : Number(minor)
}
