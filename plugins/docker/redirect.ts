import { messageOf } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import { REDIRECTED } from '../../src/guest/redirect/addresses.ts'
import { redirectorBody, redirectorName } from './container.ts'
import type { DockerEngine } from './engine.ts'
import { EngineError, isConflict } from './failure.ts'
import { findImage } from './image.ts'
import { removeContainer } from './remove-container.ts'

const ENDS_WITHIN_MS = 30_000
const MAX_SAID_LENGTH = 500

export interface ContainerToRedirect {
  engine: DockerEngine
  container: string
  imageId: string
  dataId: string
}

/**
 * Redirects what programs in a container connect to, by another container that is in its network, may change that, and ends at once.
 * It may be done again at any time. Resolves to the reason where it is not possible; never rejects.
 */
export async function redirectContainer({
  engine,
  container,
  imageId,
  dataId,
}: ContainerToRedirect): Promise<string | undefined> {
  const name = redirectorName(container)
  try {
    const image = await findImage(engine, imageId)
    if (!image) return 'the engine has its image no more'
    const body = redirectorBody(container, image, dataId)
    const create = () => engine.call('POST', '/containers/create', { query: { name }, body })
    await create().catch(async error => {
      if (!isConflict(error)) throw error
      // A server that was killed may have left such a container.
      await removeContainer(engine, name)
      await create()
    })
    const said = await runToEnd(engine, name)
    return said === REDIRECTED ? undefined : said || 'what redirects connections was ended by the engine'
  } catch (error) {
    return `the engine does not redirect connections: ${messageOf(error)}`
  } finally {
    // If this fails, the next try removes it, or the container's removal does.
    await removeContainer(engine, name).catch(() => {})
  }
}

/** Runs the container to its end and resolves to what it printed. */
async function runToEnd(engine: DockerEngine, name: string): Promise<string> {
  const stream = await engine.hijack(`/containers/${name}/attach?stream=1&stdout=1&stderr=1`, {})
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const timer = setTimeout(() => reject(new EngineError(500, 'it does not end')), ENDS_WITHIN_MS)
  let said = ''
  stream.on('data', (bytes: Buffer) => {
    said = `${said}${bytes.toString('utf8')}`.slice(0, MAX_SAID_LENGTH)
  })
  stream.once('error', reject).once('close', resolve).once('end', resolve)
  try {
    await Promise.all([engine.call('POST', `/containers/${name}/start`), promise])
    return stream.stderr || said.trim()
  } finally {
    clearTimeout(timer)
    stream.destroy()
  }
}

export interface JoinedGuest {
  connection: GuestConnection
  /** The reason why programs inside reach the server only by its proxy. Absent when they may connect to any address. */
  onlyProxy?: string
}

/** Serves the connections and name look-ups of programs inside. Returns the reason when the guest cannot do that. */
export async function openNetwork(connection: GuestConnection): Promise<JoinedGuest> {
  try {
    await connection.listenForDirect()
    // Only from here on do the addresses that names get lead anywhere.
    connection.answerNames()
    return { connection }
  } catch (error) {
    return { connection, onlyProxy: messageOf(error) }
  }
}
