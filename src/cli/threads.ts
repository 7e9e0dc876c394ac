import { type Given, UsageError } from './command-line.ts'
import { printList } from './list.ts'
import { printable } from './printable.ts'
import { toSandboxPath } from './sandbox-path.ts'
import { findServer, type ServerClient } from './server-client.ts'

interface Thread {
  id: string
  name: string | null
  status: string
  createdAt: string
  updatedAt: string
}

interface ThreadDetail extends Thread {
  messages: { role: string; content: string }[]
}

/** Lists, renames and shows the conversations in a sandbox of a running server. */
export async function threads(given: Given): Promise<void> {
  const server = findServer(given)
  const [sandbox = '', thread = ''] = given.words
  if (given.action === 'list' && sandbox !== '' && given.has('search'))
    throw new UsageError('--search: looks in all sandboxes; leave SANDBOX out')
  if (given.action === 'list' && sandbox === '') return await listAll(given, server)
  const path = `${toSandboxPath(sandbox)}/threads`
  if (given.action === 'rename') {
    const name = given.words.slice(2).join(' ')
    await server.request('PATCH', `${path}/${encodeURIComponent(thread)}`, { name })
    if (!given.has('quiet')) console.log(`${thread} is called ${printable(name)}.`)
    return
  }
  if (given.action === 'list') {
    printList(given, (await (await server.request('GET', path)).json()) as Thread[], {
      id: each => each.id,
      status: each => each.status,
      created: each => each.createdAt,
      used: each => each.updatedAt,
      name: each => each.name ?? '',
    })
    return
  }
  const response = await server.request('GET', `${path}/${encodeURIComponent(thread)}`)
  const detail = (await response.json()) as ThreadDetail
  if (given.has('json')) console.log(JSON.stringify(detail, null, 2))
  else for (const { role, content } of detail.messages) console.log(`${role} › ${printable(content)}`)
}

interface FoundThread extends Thread {
  sandboxId: string
}

/** The newest threads of all sandboxes. */
async function listAll(given: Given, server: ServerClient): Promise<void> {
  const q = given.find('search')
  const query = new URLSearchParams({ limit: '200', ...(q !== undefined && { q }) })
  const { threads: found } = (await (await server.request('GET', `/v1/threads?${query}`)).json()) as {
    threads: FoundThread[]
  }
  printList(given, found, {
    id: each => each.id,
    sandbox: each => each.sandboxId,
    status: each => each.status,
    used: each => each.updatedAt,
    name: each => each.name ?? '',
  })
}
