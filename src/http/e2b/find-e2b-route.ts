import { createFindRoute } from '../find-route.ts'
import { type E2bTarget, ENVD_PORT } from './target.ts'

/** The paths of the control plane. They are here, since the routes themselves are loaded only when they are used. */
export const controlPaths: readonly string[] = [
  '/sandboxes',
  '/v2/sandboxes',
  '/sandboxes/:sandboxID',
  '/sandboxes/:sandboxID/connect',
  '/v2/sandboxes/:sandboxID/connect',
  ...['fork', 'metrics', 'network', 'pause', 'refreshes', 'resume', 'snapshots', 'timeout'].map(
    word => `/sandboxes/:sandboxID/${word}`,
  ),
  '/snapshots',
  '/templates',
  '/templates/tags',
  '/templates/aliases/:alias',
  '/templates/:templateID',
]

/** The paths for commands and files of a sandbox. */
export const envdPaths: readonly string[] = [
  ...['/envs', '/files', '/files/compose', '/health', '/metrics'],
  ...['List', 'SendInput', 'StreamInput', 'CloseStdin', 'SendSignal', 'Update', 'Start', 'Connect'].map(
    name => `/process.Process/${name}`,
  ),
  ...['Stat', 'MakeDir', 'Move', 'Remove', 'ListDir', 'CreateWatcher', 'GetWatcherEvents', 'RemoveWatcher'].map(
    name => `/filesystem.Filesystem/${name}`,
  ),
  '/filesystem.Filesystem/WatchDir',
]

/** What a program in the sandbox answers has one name, whatever the path. */
const PORT_ROUTE = 'sandbox port'

const findControl = createFindRoute(controlPaths)
const findEnvd = createFindRoute(envdPaths)

/** Finds the route that a request of E2B's clients is for, as `FindRoute` does for the API. */
export function findE2bRoute(target: E2bTarget, method: string, path: string): { method: string; route: string } {
  if (target.kind === 'control') return findControl(method, path)
  const found = findEnvd(method, path)
  return target.port === ENVD_PORT ? found : { ...found, route: PORT_ROUTE }
}
