import { type Given, UsageError } from './command-line.ts'
import { printList } from './list.ts'
import { printable } from './printable.ts'
import { findServer, type ServerClient } from './server-client.ts'

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

/** Makes, lists and removes the sandboxes of a running server. */
export async function sandboxes(given: Given): Promise<void> {
  const server = findServer(given)
  const [id = ''] = given.words
  if (given.action === 'list') {
    printList(given, await listAll(server), {
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
  } else {
    for (const each of new Set(given.words)) {
      await server.request('DELETE', toSandboxPath(each))
      if (!given.has('quiet')) console.log(`${each} is removed.`)
    }
  }
}

/** The API's path of a sandbox. Throws a UsageError for a text that cannot be an id. */
export function toSandboxPath(sandbox: string): string {
  if (sandbox === '' || sandbox === '.' || sandbox === '..') throw new UsageError('SANDBOX must be an id')
  return `/v1/sandboxes/${encodeURIComponent(sandbox)}`
}

async function listAll(server: ServerClient): Promise<Summary[]> {
  const all: Summary[] = []
  let before: string | null = null
  do {
    const query: string = `limit=200${before === null ? '' : `&before=${before}`}`
    const response = await server.request('GET', `/v1/sandboxes?${query}`)
    const page = (await response.json()) as { sandboxes: Summary[]; nextBefore: string | null }
    all.push(...page.sandboxes)
    before = page.nextBefore
  } while (before !== null)
  return all
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
