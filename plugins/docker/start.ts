import { ApiError, messageOf } from '../../src/errors.ts'
import { connectGuest, type GuestConnection } from '../../src/guest/host/connect.ts'
import type { Outlets } from '../../src/guest/host/outlets.ts'
import { readBytes } from '../../src/read/bytes.ts'
import { objectOf } from '../../src/read/json.ts'
import { bridgeBody, guestDirectoryInside } from './container.ts'
import type { DockerEngine } from './engine.ts'
import { EngineError, isMissing } from './failure.ts'
import { type JoinedGuest, openNetwork, redirectContainer } from './redirect.ts'
import { isolationOf } from './runtime.ts'

/** A guest that starts on a cold, busy machine has been seen to need a second. */
const HELLO_WITHIN_MS = 30_000

/** A container with a guest in it, and how to reach that guest. */
export interface GuestContainer {
  engine: DockerEngine
  container: string
  imageId: string
  dataId: string
  runtime: string | undefined
  outlets: Outlets
}

export type ContainerState = 'running' | 'paused' | 'stopped' | 'missing'

export async function readState(engine: DockerEngine, container: string): Promise<ContainerState> {
  try {
    const { State } = objectOf(await engine.call('GET', `/containers/${container}/json`)) ?? {}
    const { Running, Paused } = objectOf(State) ?? {}
    return Running !== true ? 'stopped' : Paused === true ? 'paused' : 'running'
  } catch (error) {
    if (isMissing(error)) return 'missing'
    throw error
  }
}

/** Starts a container that does not run and waits until its guest answers. When it rejects, the container does not run. */
export async function startContainer(guestContainer: GuestContainer): Promise<JoinedGuest> {
  const { engine, container } = guestContainer
  await engine.call('POST', `/containers/${container}/start`)
  try {
    return await joinContainer(guestContainer, HELLO_WITHIN_MS)
  } catch (error) {
    const tail = await readLogTail(engine, container).catch(() => '')
    await stopContainer(engine, container)
    throw new ApiError('sandbox_unavailable', `The sandbox did not start: ${tail || messageOf(error)}`)
  }
}

/** Connects to the guest of a container that runs. Rejects when it does not answer within `withinMs`. */
export async function joinContainer(guestContainer: GuestContainer, withinMs: number): Promise<JoinedGuest> {
  const { onDirect } = guestContainer.outlets
  const redirect = () =>
    isolationOf(guestContainer.runtime) === 'gvisor'
      ? // The guest redirects by itself: no other container can enter the network in gVisor's kernel.
        undefined
      : redirectContainer(guestContainer)
  // A caller's command runs once both are done.
  const [connection, onlyProxy] = await Promise.all([
    connect(guestContainer, withinMs),
    onDirect ? redirect() : 'nobody takes it',
  ])
  return onlyProxy === undefined ? await openNetwork(connection) : { connection, onlyProxy }
}

async function connect(
  { engine, container, dataId, outlets }: GuestContainer,
  withinMs: number,
): Promise<GuestConnection> {
  const body = bridgeBody(guestDirectoryInside(dataId))
  const { Id } = objectOf(await engine.call('POST', `/containers/${container}/exec`, { body })) ?? {}
  if (typeof Id !== 'string') throw new EngineError(500, 'the engine made an exec without an id')
  const stream = await engine.hijack(`/exec/${Id}/start`, { Detach: false, Tty: false })
  const timer = setTimeout(() => stream.destroy(new Error('the guest does not answer')), withinMs)
  try {
    return await connectGuest(stream, outlets)
  } catch (error) {
    stream.destroy()
    throw stream.stderr ? new Error(stream.stderr) : error
  } finally {
    clearTimeout(timer)
  }
}

/** Ends every process of a container; its files stay. Does nothing when it does not run or does not exist. */
export async function stopContainer(engine: DockerEngine, container: string): Promise<void> {
  try {
    await engine.call('POST', `/containers/${container}/stop`, { query: { t: '0' } })
  } catch (error) {
    if (!isMissing(error)) throw error
  }
}

const LOG_HEADER_BYTES = 8
const MAX_LOG_BYTES = 64 * 1024
const MAX_TAIL_LENGTH = 500

/** The end of a container's log. Each line follows a header of eight bytes: stream, three zeros, u32be length. */
async function readLogTail(engine: DockerEngine, container: string): Promise<string> {
  const query = { stdout: 'true', stderr: 'true', tail: '5' }
  const log = await readBytes(await engine.stream('GET', `/containers/${container}/logs`, { query }), MAX_LOG_BYTES)
  const lines: string[] = []
  for (let at = 0; log && at + LOG_HEADER_BYTES <= log.byteLength; ) {
    const end = at + LOG_HEADER_BYTES + log.readUInt32BE(at + 4)
    lines.push(log.toString('utf8', at + LOG_HEADER_BYTES, end).trim())
    at = end
  }
  return lines.join(' ').slice(-MAX_TAIL_LENGTH)
}
