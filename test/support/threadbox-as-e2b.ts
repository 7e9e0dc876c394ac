import { createKey } from '../../src/core/access/keys.ts'
import { toE2bId } from '../../src/core/e2b/ids.ts'
import type { RuntimeOptions } from '../../src/start/runtime.ts'
import { TestApp } from './app.ts'
import { codeInterpreter } from './code-interpreter.ts'
import { type FaultyProxy, openFaultyProxy } from './faulty-proxy.ts'

/** A machine's, with a bound on what a fork bomb takes of the one that all of them share. */
const limits = { memoryMb: 1024, processes: 600, cpus: 2, diskMb: 128 }

export interface AsE2bOptions {
  /** With this domain, ports have hosts of their own. Without it only headers lead to a sandbox. */
  domain?: string
  flags?: readonly string[]
  reach?: RuntimeOptions['reach']
}

/** A threadbox that others use as their E2B, by its surface for E2B's clients, through a proxy that can break what goes to it. */
export interface ThreadboxAsE2b {
  app: TestApp
  key: string
  proxy: FaultyProxy
  /** The variables that the backend e2b needs. */
  variables: { E2B_API_KEY: string; E2B_API_URL: string; E2B_SANDBOX_URL: string }
  /** The variables that E2B's SDK needs. It does not go through the proxy. */
  options: { apiKey: string; apiUrl: string; sandboxUrl: string }
  /** Maps environments of the backend e2b to the ids of their sandboxes. */
  sandboxes(): Map<string, string>
  /** Returns the id of the sandbox that is an environment of the backend e2b. Throws when there is none. */
  idOf(environmentId: string): string
  close(): Promise<void>
}

/** Templates: `base`, and `code-interpreter-v1` with a code interpreter. */
export async function openThreadboxAsE2b({ domain, flags = [], reach }: AsE2bOptions = {}): Promise<ThreadboxAsE2b> {
  const app = new TestApp([...flags, ...(domain ? ['--preview-domain', domain] : [])], {}, () => [], reach)
  await app.start()
  app.agent('base', { limits })
  app.agent('code-interpreter-v1', { limits, ...codeInterpreter })
  const { key } = createKey(app.runtime.db, { team: 'default', name: 'e2b', isForE2b: true })
  const proxy = await openFaultyProxy(() => Number(new URL(app.url).port))
  const sandboxes = () =>
    app.beside(db => {
      const named = "json_extract(metadata, '$.threadboxEnvironment')"
      const rows = db.query(`select ${named}, sandbox_id from e2b_sandboxes order by sandbox_id`).values()
      return new Map((rows as [string, string][]).map(([environmentId, id]) => [environmentId, toE2bId(id)]))
    })
  return {
    ...{ app, key, proxy, sandboxes },
    variables: { E2B_API_KEY: key, E2B_API_URL: proxy.url, E2B_SANDBOX_URL: proxy.url },
    options: { apiKey: key, apiUrl: app.url, sandboxUrl: app.url },
    idOf(environmentId) {
      const id = sandboxes().get(environmentId)
      if (id === undefined) throw new Error(`no sandbox is ${environmentId}`)
      return id
    },
    async close() {
      await proxy.close()
      await app.stop()
    },
  }
}
