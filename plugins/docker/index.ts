import type { Plugin, PluginContext } from '../../src/plugin-api/index.ts'
import { createDockerBackend, type DockerOptions } from './backend.ts'

export { createDockerBackend, type DockerOptions }

/** The backend `docker`: sandboxes in containers of a Docker engine, here or elsewhere. */
export function docker(options: Omit<DockerOptions, keyof PluginContext>): Plugin {
  return { name: 'docker', backend: context => createDockerBackend({ ...options, ...context }) }
}
