import {
  HarnessSandboxAuthenticationError,
  type HarnessV1NetworkSandboxSession,
  type HarnessV1SandboxProvider,
} from '@ai-sdk/harness'
import { isCode, ThreadboxError } from '../error.ts'
import { createSandbox, findSandbox, nameOfSession } from './create.ts'
import { PROVIDER_ID } from './provider-id.ts'
import { openSession } from './session.ts'
import { portsOf, serverOf, type ThreadboxSandboxSettings } from './settings.ts'
import { createOfTemplate } from './templates.ts'

type CreateOptions = NonNullable<Parameters<HarnessV1SandboxProvider['createSession']>[0]>
export type ThreadboxSandboxProvider = Required<HarnessV1SandboxProvider>

/**
 * Makes a provider of sandboxes for the AI SDK's harnesses. No request is sent before the first session.
 *
 * @example
 * const sandbox = createThreadboxSandbox({ baseUrl: 'http://localhost:7070', apiKey: process.env.THREADBOX_API_KEY!, agent: 'coder' })
 * const agent = new HarnessAgent({ harness: claudeCode, sandbox })
 */
export function createThreadboxSandbox(settings: ThreadboxSandboxSettings): ThreadboxSandboxProvider {
  const server = serverOf(settings)
  const open = (id: string, signal?: AbortSignal) =>
    openSession(server, { id, ports: portsOf(settings), isOwned: settings.sandbox === undefined, signal })

  const create = async ({ sessionId, identity, onFirstCreate, abortSignal: signal }: CreateOptions) => {
    if (settings.sandbox !== undefined) return await open(settings.sandbox, signal)
    const name = sessionId === undefined ? undefined : await nameOfSession(sessionId)
    if (identity !== undefined && onFirstCreate !== undefined) {
      const id = await createOfTemplate(server, settings, { identity, onFirstCreate, name, signal })
      if (id !== undefined) return await open(id, signal)
    }
    const session = await open(await createSandbox(server, settings, { name, signal }), signal)
    try {
      await onFirstCreate?.(session.restricted(), signal ? { abortSignal: signal } : {})
      return session
    } catch (error) {
      await Promise.resolve(session.destroy()).catch(() => {})
      throw error
    }
  }

  const resume = async (sessionId: string, signal?: AbortSignal): Promise<HarnessV1NetworkSandboxSession> => {
    if (settings.sandbox !== undefined) return await open(settings.sandbox, signal)
    const found = await findSandbox(server, await nameOfSession(sessionId), signal)
    if (!found) throw new ThreadboxError(`No sandbox has the session ${sessionId}.`, 404, 'sandbox_not_found')
    const session = await open(found.id, signal)
    // This read starts a stopped sandbox.
    await session.readFile({ path: '/.threadbox-wake', ...(signal && { abortSignal: signal }) })
    return session
  }

  return {
    specificationVersion: 'harness-sandbox-v1',
    providerId: PROVIDER_ID,
    async createSession(options = {}) {
      options.abortSignal?.throwIfAborted()
      return await authenticated(() => create(options))
    },
    async resumeSession({ sessionId, abortSignal }) {
      abortSignal?.throwIfAborted()
      return await authenticated(() => resume(sessionId, abortSignal))
    },
  }
}

async function authenticated<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!isCode(error, 'unauthorized', 'forbidden')) throw error
    throw new HarnessSandboxAuthenticationError({
      message: `The threadbox server refused the key: ${error.message} Pass createThreadboxSandbox() an \`apiKey\` with the scope \`sandboxes\`.`,
      sandboxProviderId: PROVIDER_ID,
      cause: error,
    })
  }
}
