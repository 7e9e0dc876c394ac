import type { HarnessV1SandboxProvider } from '@ai-sdk/harness'
import { isCode } from '../error.ts'
import { pause } from '../pause.ts'
import type { Server } from '../server.ts'
import { type CreateSettings, createSandbox, findSandbox } from './create.ts'
import { hash } from './hash.ts'
import { openSession } from './session.ts'
import { DEFAULT_AGENT } from './settings.ts'

type CreateOptions = NonNullable<Parameters<HarnessV1SandboxProvider['createSession']>[0]>
type OnFirstCreate = NonNullable<CreateOptions['onFirstCreate']>

/** How long to wait for another process that prepares the same template. */
const PATIENCE_MS = 120_000
const LOOK_EVERY_MS = 500
/** A template sandbox that is older than this was left behind by a process that died. */
const LEFT_BEHIND_MS = 30 * 60_000

/**
 * The name of a template's snapshot. It changes with the agent and with what the settings write to the disk, so that a new
 * version of the agent is prepared anew.
 */
async function nameOfTemplate(
  server: Server,
  { agent = DEFAULT_AGENT, files, setup, envs }: CreateSettings,
  identity: string,
  signal?: AbortSignal,
): Promise<string> {
  const path = `/agents/${encodeURIComponent(agent)}/definition`
  const { revision } = await server.json<{ revision?: string }>('GET', path, { signal })
  const content = JSON.stringify([agent, revision, files, setup, Object.keys(envs ?? {}).sort()])
  return `ai-sdk-${await hash(identity, 16)}-${await hash(content, 16)}`
}

interface Session {
  identity: string
  onFirstCreate: OnFirstCreate
  /** The name of the new sandbox. */
  name: string | undefined
  signal: AbortSignal | undefined
}

/**
 * Makes a sandbox that begins with what `onFirstCreate` prepared. It runs once, in a sandbox of its own, and all others begin
 * with that one's snapshot. Of several processes one prepares, and the others wait. Undefined when there is no snapshot, because
 * the backend takes none, or because the other process takes too long.
 */
export async function createOfTemplate(
  server: Server,
  settings: CreateSettings,
  { identity, onFirstCreate, name, signal }: Session,
): Promise<string | undefined> {
  const snapshot = await nameOfTemplate(server, settings, identity, signal)
  const makingName = `${snapshot}-making`
  const begunAt = Date.now()
  for (;;) {
    try {
      return await createSandbox(server, settings, { name, snapshot, signal })
    } catch (error) {
      if (!isCode(error, 'not_found')) throw error
    }
    const template = await createSandbox(server, settings, { name: makingName, signal }).catch(error => {
      if (isCode(error, 'conflict')) return undefined
      throw error
    })
    if (template !== undefined) {
      if (!(await prepare(server, { template, snapshot, onFirstCreate, signal }))) return undefined
      continue
    }
    const other = await findSandbox(server, makingName, signal)
    if (other && Date.now() - Date.parse(other.createdAt) > LEFT_BEHIND_MS) await remove(server, other.id)
    if (Date.now() - begunAt > PATIENCE_MS) return undefined
    await pause(LOOK_EVERY_MS, signal)
  }
}

interface Template {
  /** The name of the sandbox in which the template is prepared. It is removed afterwards. */
  template: string
  snapshot: string
  onFirstCreate: OnFirstCreate
  signal: AbortSignal | undefined
}

/** Returns false when the backend takes no snapshots. */
async function prepare(server: Server, { template, snapshot, onFirstCreate, signal }: Template): Promise<boolean> {
  try {
    const session = await openSession(server, { id: template, ports: [], isOwned: true, signal })
    await onFirstCreate(session.restricted(), signal ? { abortSignal: signal } : {})
    await server.request('POST', `/sandboxes/${template}/snapshots`, { body: { name: snapshot }, signal })
    return true
  } catch (error) {
    if (!isCode(error, 'conflict')) throw error
    return error.field === 'name'
  } finally {
    await remove(server, template)
  }
}

async function remove(server: Server, id: string): Promise<void> {
  try {
    await server.request('DELETE', `/sandboxes/${id}`)
  } catch (error) {
    if (!isCode(error, 'sandbox_not_found')) throw error
  }
}
