import { mkdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { isObject, type JsonObject, objectOf, parseJson } from '../read/json.ts'
import type { Place } from './server-client.ts'

const stateFile = () => join(process.env.XDG_STATE_HOME ?? join(homedir(), '.local/state'), 'threadbox/chat.json')

const toKey = (url: string, agent: string) => `${url} ${agent}`

/** The sandbox and thread of the last chat with this agent of this server. */
export async function findLastThread(url: string, agent: string): Promise<Place | undefined> {
  const place = (await readState())[toKey(url, agent)]
  if (!isObject(place)) return undefined
  const { sandboxId, threadId } = place
  return typeof sandboxId === 'string' && typeof threadId === 'string' ? { sandboxId, threadId } : undefined
}

export async function rememberThread(url: string, agent: string, { sandboxId, threadId }: Place): Promise<void> {
  const state = { ...(await readState()), [toKey(url, agent)]: { sandboxId, threadId } }
  await mkdir(dirname(stateFile()), { recursive: true, mode: 0o700 })
  await Bun.write(stateFile(), JSON.stringify(state, null, 2))
}

/** Reads the state; empty when the file is missing or broken. */
async function readState(): Promise<JsonObject> {
  const text = await Bun.file(stateFile())
    .text()
    .catch(() => '')
  return objectOf(parseJson(text)) ?? {}
}
