import { type Given, UsageError } from './command-line.ts'
import { toSandboxPath } from './sandbox-path.ts'
import type { ServerClient } from './server-client.ts'

interface Fork {
  sandbox?: { id: string }
  threadId?: string | null
  error?: { message: string }
}

/** Forks a sandbox of a running server. Resolves to false when not every fork was made. */
export async function fork(given: Given, server: ServerClient): Promise<boolean> {
  const [id = ''] = given.words
  const [count = '1', threadId, messageId] = [given.find('count'), given.find('thread'), given.find('message')]
  if (!/^[1-9][0-9]{0,2}$/.test(count)) throw new UsageError('--count: must be a number from 1 to 100')
  if (messageId !== undefined && threadId === undefined) throw new UsageError('--message goes with --thread')
  const wanted = { count: Number(count), ...(threadId && { threadId }), ...(messageId && { messageId }) }
  const answer = await (await server.request('POST', `${toSandboxPath(id)}/fork`, wanted)).json()
  const { forks, frozenMs, method } = answer as { forks: Fork[]; frozenMs: number; method: string }
  const made = forks.flatMap(({ sandbox, threadId }) => (sandbox ? [{ id: sandbox.id, threadId }] : []))
  if (given.has('json')) console.log(JSON.stringify(answer, null, 2))
  else {
    for (const each of made) {
      console.log(given.has('quiet') || !each.threadId ? each.id : `${each.id}\t${each.threadId}`)
    }
    if (!given.has('quiet')) console.log(`${id} was frozen for ${frozenMs} ms (${method}).`)
  }
  for (const { error } of forks) if (error) console.error(`threadbox: a fork could not be made: ${error.message}`)
  return made.length === forks.length
}
