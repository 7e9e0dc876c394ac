import { type Given, UsageError } from './command-line.ts'
import { printList } from './list.ts'
import { listAll } from './list-all.ts'
import { toSandboxPath } from './sandbox-path.ts'
import { findServer, type ServerClient } from './server-client.ts'

interface Snapshot {
  id: string
  name: string | null
  sandbox: { id: string }
  agent: { slug: string }
  provider: string
  diskBytes: number
  frozenMs: number
  method: string
  createdAt: string
}

/** Takes, lists and removes snapshots of the sandboxes of a running server. */
export async function snapshots(given: Given): Promise<void> {
  const server = findServer(given)
  const [id] = given.words
  if (given.action === 'create') return await create(given, server)
  if (given.action === 'list') {
    const path = id === undefined ? '/v1/snapshots' : `${toSandboxPath(id)}/snapshots`
    printList(given, await listAll<Snapshot>(server, path, 'snapshots'), {
      id: each => each.id,
      name: each => each.name ?? '',
      sandbox: each => each.sandbox.id,
      agent: each => each.agent.slug,
      backend: each => each.provider,
      size: each => toMb(each.diskBytes),
      created: each => each.createdAt,
    })
    return
  }
  for (const each of new Set(given.words)) {
    if (each === '' || each === '.' || each === '..') throw new UsageError('SNAPSHOT must be an id or a name')
    await server.request('DELETE', `/v1/snapshots/${encodeURIComponent(each)}`)
    if (!given.has('quiet')) console.log(`${each} is removed.`)
  }
}

async function create(given: Given, server: ServerClient): Promise<void> {
  const [sandbox = ''] = given.words
  const name = given.find('name')
  const response = await server.request(
    'POST',
    `${toSandboxPath(sandbox)}/snapshots`,
    name === undefined ? {} : { name },
  )
  const made = (await response.json()) as Snapshot
  if (given.has('json')) console.log(JSON.stringify(made, null, 2))
  else if (given.has('quiet')) console.log(made.id)
  else {
    const what = `${made.id} has the files of ${sandbox}, ${toMb(made.diskBytes)}`
    console.log(`${what}. It was frozen for ${made.frozenMs} ms (${made.method}).`)
  }
}

const toMb = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`
