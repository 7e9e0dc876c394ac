import type { Given } from './command-line.ts'
import { fork } from './fork.ts'
import { printList } from './list.ts'
import { listAll } from './list-all.ts'
import { printable } from './printable.ts'
import { toSandboxPath } from './sandbox-path.ts'
import { findServer } from './server-client.ts'

interface Summary {
  id: string
  status: string
  error: string | null
  agent: { slug: string }
  provider: string
  /** Absent in the answers of a server of an earlier version. */
  isolation?: { kind: string | null }
  createdAt: string
  updatedAt: string
}

interface Detail extends Summary {
  threads: { id: string; name: string | null; status: string }[]
  isolation: { kind: string | null; details: string[] }
  network: { mode: string }
}

/** Lists, shows, forks and removes the sandboxes of a running server. Resolves to false when not all was done. */
export async function sandboxes(given: Given): Promise<boolean> {
  const server = findServer(given)
  const [id = ''] = given.words
  if (given.action === 'list') {
    printList(given, await listAll<Summary>(server, '/v1/sandboxes', 'sandboxes'), {
      id: each => each.id,
      agent: each => each.agent.slug,
      status: each => each.status,
      backend: each => each.provider,
      isolation: each => each.isolation?.kind ?? 'unknown',
      created: each => each.createdAt,
      used: each => each.updatedAt,
    })
  } else if (given.action === 'show') {
    const detail = (await (await server.request('GET', toSandboxPath(id))).json()) as Detail
    if (given.has('json')) console.log(JSON.stringify(detail, null, 2))
    else show(detail)
  } else if (given.action === 'fork') {
    return await fork(given, server)
  } else {
    for (const each of new Set(given.words)) {
      await server.request('DELETE', toSandboxPath(each))
      if (!given.has('quiet')) console.log(`${each} is removed.`)
    }
  }
  return true
}

function show({ id, status, error, agent, provider, createdAt, updatedAt, threads, isolation, network }: Detail): void {
  const lines = [
    ['id', id],
    ['agent', agent.slug],
    ['status', error === null ? status : `${status}: ${error}`],
    ['backend', isolation.kind === null ? provider : `${provider} (${isolation.kind})`],
    ['created', createdAt],
    ['used', updatedAt],
    ['network', network.mode],
    ...isolation.details.map(each => ['holds', each]),
    ...threads.map(thread => ['thread', [thread.id, thread.status, thread.name ?? ''].join(' ').trimEnd()]),
  ]
  for (const [name = '', value = ''] of lines) console.log(`${name.padEnd(9)}${printable(value)}`)
}
