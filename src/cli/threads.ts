import type { Given } from './command-line.ts'
import { printList } from './list.ts'
import { printable } from './printable.ts'
import { toSandboxPath } from './sandboxes.ts'
import { findServer } from './server-client.ts'

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

/** Lists and shows the conversations in a sandbox of a running server. */
export async function threads(given: Given): Promise<void> {
  const server = findServer(given)
  const [sandbox = '', thread = ''] = given.words
  const path = `${toSandboxPath(sandbox)}/threads`
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
