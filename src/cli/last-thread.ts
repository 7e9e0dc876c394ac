import { mkdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Place } from './server-client.ts'

const stateFile = () => join(process.env.XDG_STATE_HOME ?? join(homedir(), '.local/state'), 'threadbox/chat.json')

const keyOf = (url: string, agent: string) => `${url} ${agent}`

/** Where the last chat with this agent of this server was. */
export async function findLastThread(url: string, agent: string): Promise<Place | undefined> {
  const place = (await readState())[keyOf(url, agent)]
  return place && typeof place.sandboxId === 'string' && typeof place.threadId === 'string' ? place : undefined
}

export async function rememberThread(url: string, agent: string, { sandboxId, threadId }: Place): Promise<void> {
  const state = { ...(await readState()), [keyOf(url, agent)]: { sandboxId, threadId } }
  await mkdir(dirname(stateFile()), { recursive: true, mode: 0o700 })
  await Bun.write(stateFile(), JSON.stringify(state, null, 2))
}

/** A file that is missing or broken is no state. */
const readState = async (): Promise<Record<string, Place>> => {
  const state: unknown = await Bun.file(stateFile())
    .json()
    .catch(() => undefined)
  return typeof state === 'object' && state !== null ? (state as Record<string, Place>) : {}
}
