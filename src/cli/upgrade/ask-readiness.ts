import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { objectOf } from '../../read/json.ts'

const LISTENS = '0A'
const ANSWERS_WITHIN_MS = 5000

/** A server's own report at one of its addresses. */
export type Readiness = { isReady: true } | { isReady: false; reasons: string }

/** Asks a process on this machine whether it is a server that is ready for work. Undefined when none of its addresses answers. */
export async function askReadiness(pid: number): Promise<Readiness | undefined> {
  for (const address of listAddresses(pid)) {
    for (const scheme of ['http', 'https']) {
      const answer = await fetch(`${scheme}://${address}/health/ready`, {
        signal: AbortSignal.timeout(ANSWERS_WITHIN_MS),
        // The certificate has the name that users know, not this address. That the address belongs to this process was checked
        // above.
        tls: { rejectUnauthorized: false },
      }).catch(() => undefined)
      const body = objectOf(await answer?.json().catch(() => undefined))
      if (answer?.status === 200 && body?.status === 'ready') return { isReady: true }
      if (answer?.status === 503 && body?.status === 'not_ready')
        return { isReady: false, reasons: [body.reasons].flat().join(', ') }
    }
  }
  return undefined
}

/** The addresses at which a process accepts TCP connections, as hosts of URLs. */
function listAddresses(pid: number): string[] {
  const sockets = new Set(
    list(`/proc/${pid}/fd`).flatMap(fd => /^socket:\[(\d+)\]$/.exec(link(`/proc/${pid}/fd/${fd}`))?.[1] ?? []),
  )
  return ['tcp', 'tcp6'].flatMap(table =>
    read(`/proc/${pid}/net/${table}`)
      .split('\n')
      .flatMap(line => {
        const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
        return state === LISTENS && sockets.has(inode) ? [hostOf(local)] : []
      }),
  )
}

/** `0100007F:1F90` means 127.0.0.1:8080: each group of 32 bits is in the machine's byte order. */
function hostOf(local: string): string {
  const [address = '', port = ''] = local.split(':')
  const bytes = Buffer.from(address, 'hex').swap32()
  const at = `:${Number.parseInt(port, 16)}`
  if (bytes.length === 4) return (bytes.every(byte => byte === 0) ? '127.0.0.1' : bytes.join('.')) + at
  if (bytes.every(byte => byte === 0)) return `[::1]${at}`
  return `[${(bytes.toString('hex').match(/.{4}/g) ?? []).join(':')}]${at}`
}

function list(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function link(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
