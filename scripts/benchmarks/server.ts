import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

export const executable = resolve(process.argv[2] ?? 'dist/threadbox')
const apiKey = crypto.randomUUID()
export const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }

/** The executable under measurement, serving. */
export interface Server {
  url: string
  pid: number
  /** From the start of the process, in ms. */
  listeningAfter: number
  stop(): Promise<void>
}

export async function serve(
  dataDirectory: string,
  flags: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<Server> {
  const startedAt = performance.now()
  const log = Bun.file(join(dataDirectory, 'bench.log'))
  const child = Bun.spawn([executable, 'serve', '--data-dir', dataDirectory, '--port', '0', ...flags], {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', THREADBOX_API_KEY: apiKey, ...env },
    stdio: ['ignore', 'pipe', log],
  })
  let printed = ''
  for await (const bytes of child.stdout) {
    printed += Buffer.from(bytes)
    if (printed.includes('\n')) break
  }
  const listeningAfter = performance.now() - startedAt
  const url = /^threadbox listening on (\S+)/.exec(printed)?.[1]
  if (!url) throw new Error(`no server: ${printed}${await log.text()}`)
  const stop = async () => {
    child.kill('SIGTERM')
    await child.exited
  }
  return { url, pid: child.pid, listeningAfter, stop }
}

/** Gives a directory for a server's data, and removes it with all that is in it. */
export async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'threadbox-bench-'))
  try {
    await work(directory)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** One request; what it answered, as text. */
export async function call(url: string, method: string, path: string, body?: object): Promise<string> {
  const response = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text
}

/** Sends a message to an agent. What it streams is not awaited. */
export async function say(url: string, agent: string, text: string, fields: object = {}): Promise<Response> {
  const body = JSON.stringify({ ...fields, messages: [{ role: 'user', parts: [{ type: 'text', text }] }] })
  const response = await fetch(`${url}/v1/chat/${agent}`, { method: 'POST', headers, body })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return response
}

/** What each server-sent event says, as soon as it is here. */
export async function* eventsOf(response: Response): AsyncGenerator<{ type?: string }> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) {
    rest += decoder.decode(bytes, { stream: true })
    const blocks = rest.split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const data = /^data: (\{.*)$/m.exec(block)?.[1]
      if (data) yield JSON.parse(data)
    }
  }
}

/** Returns a process’s memory in MB. */
export function memoryOf(pid: number, name: 'Rss' | 'Pss'): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  return Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(rollup)?.[1]) / 1024
}
