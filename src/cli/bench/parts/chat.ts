import type { Part, Round } from '../part.ts'
import type { BenchServer } from '../server.ts'
import { times } from '../time.ts'
import { fanOut } from './fan-out.ts'

const CHATS = 10
const RESUMES = 10

/** Measures what readers of a reply cost, next to the same bytes from a bare server. */
export const chat: Part = {
  rounds: 2,
  async measure(round) {
    // Each reader is an open request of one key, from one address.
    await using server = await round.place.serve([], { isUnlimited: true })
    const { id } = await server.create()
    await measureFirstChunk(round, server, id)
    await measureResume(round, server, id)
    await fanOut(round, server, id)
    await server.delete({ id })
  },
}

async function measureFirstChunk({ record }: Round, server: BenchServer, sandboxId: string): Promise<void> {
  const firsts: number[] = []
  for (let index = 0; index < CHATS; index++) {
    const startedAt = performance.now()
    let first: number | undefined
    await server.chat('hello', { sandboxId }, () => {
      first ??= performance.now() - startedAt
    })
    if (first !== undefined) firsts.push(first)
  }
  record('chat-first', firsts)
}

/** Each word of a text is a chunk of the agent echo. */
async function measureResume({ sizes, peer, record }: Round, server: BenchServer, sandboxId: string): Promise<void> {
  let count = 0
  const place = await server.chat('word '.repeat(sizes.chunks), { sandboxId }, () => {
    count += 1
  })
  if (count < sizes.chunks) throw new Error(`${count} chunks of ${sizes.chunks} came`)
  const path = `/v1/chat/echo/${sandboxId}/stream?threadId=${place.threadId}`
  let bytes = 0
  const resume = async () => {
    const response = await server.request('GET', path, undefined, { 'last-event-id': `${place.runId}/0` })
    bytes = (await response.arrayBuffer()).byteLength
  }
  await times(2, resume)
  if (bytes < sizes.chunks * 50) throw new Error(`a resume of ${sizes.chunks} chunks has ${bytes} bytes`)
  const bare = async () => {
    await (await fetch(`${peer.url}/bytes?count=${bytes}`)).arrayBuffer()
  }
  await times(2, bare)
  const [resumes, bares]: [number[], number[]] = [[], []]
  for (let index = 0; index < RESUMES; index++) {
    bares.push(...(await times(1, bare)))
    resumes.push(...(await times(1, resume)))
  }
  record('resume', resumes, bares)
}
