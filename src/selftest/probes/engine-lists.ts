import { objectOf, parseJson } from '../../read/json.ts'

/** Lists what a Docker engine has with an id in its name, labels or mounts. Rejects where the engine requires TLS. */
export async function findInEngine(id: string, signal: AbortSignal): Promise<string[]> {
  const lists = { container: '/containers/json?all=1', volume: '/volumes', image: '/images/json' }
  const found: string[] = []
  for (const [kind, path] of Object.entries(lists)) {
    const answer = parseJson(await (await ask(path, signal)).text())
    const entries = Array.isArray(answer) ? answer : objectOf(answer)?.Volumes
    for (const entry of Array.isArray(entries) ? entries : []) {
      if (JSON.stringify(entry).includes(id)) found.push(`the engine has a ${kind} of it`)
    }
  }
  return found
}

/** Finds the engine as Docker's own programs do. */
function ask(path: string, signal: AbortSignal): Promise<Response> {
  const host = process.env.DOCKER_HOST || 'unix:///var/run/docker.sock'
  if (host.startsWith('unix://')) return fetch(`http://docker${path}`, { unix: host.slice('unix://'.length), signal })
  if (process.env.DOCKER_TLS_VERIFY) throw new Error('engines behind TLS are not asked')
  return fetch(`${host.replace(/^tcp:/, 'http:')}${path}`, { signal })
}
