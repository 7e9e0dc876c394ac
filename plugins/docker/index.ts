import type { Plugin, PluginContext, SandboxCopies } from '../../src/plugin-api/index.ts'
import type { Variables } from './address.ts'
import { createDockerBackend, type DockerOptions } from './backend.ts'
import { checkCopies } from './check-copies.ts'
import { copyContainer } from './copy-container.ts'
import { copySnapshot } from './copy-snapshot.ts'

export { checkCopies, createDockerBackend, type DockerOptions }

/** The backend `docker`: sandboxes in containers of a Docker engine, here or elsewhere. */
export function docker(options: Omit<DockerOptions, keyof PluginContext>): Plugin {
  return { name: 'docker', backend: context => createDockerBackend({ ...options, ...context }) }
}

/** What backups copy of the sandboxes and snapshots of a data directory. */
export const dockerCopies = (dataDirectory: string, variables: Variables): SandboxCopies => ({
  snapshot: (id, to) => copyContainer(dataDirectory, id, to, variables),
  copySnapshot: (id, to, isRemoved) => copySnapshot(dataDirectory, id, { to, variables, isRemoved }),
})
