import { AT_ONCE, createMeter, runOutside } from '../measure-downloads.ts'
import { LeftOut, type Part, type Round } from '../part.ts'
import { PEER_HOST } from '../peer.ts'
import type { BenchServer, SandboxIds } from '../server.ts'

/** Measures downloads out of a sandbox, through the proxy that enforces its network rules. */
export const proxy: Part = {
  rounds: 2,
  async measure({ sizes, place, peer, record }: Round) {
    await using server = await place.serve(['--network-private', PEER_HOST])
    const sandbox = await server.create({ networkAllowOut: [`${PEER_HOST}/32`] })
    const tunnel = await getProxy(server, sandbox)
    const origin = new URL(peer.url)
    const measure = createMeter(peer, server, sizes)
    const inside = (script: string) => server.exec(sandbox, script)

    const direct = await measure(1, { origin }, runOutside)
    const one = await measure(1, { origin, tunnel }, inside)
    record('proxy', [one.speed], [direct.speed])
    record('proxy-cpu', [one.cpu])
    const directEight = await measure(AT_ONCE, { origin }, runOutside)
    const eight = await measure(AT_ONCE, { origin, tunnel }, inside)
    record('proxy-eight', [eight.speed], [directEight.speed])
    await server.delete(sandbox)
  },
}

/** The host and port of the proxy inside a sandbox. Throws LeftOut when it has none. */
export async function getProxy(server: BenchServer, sandbox: SandboxIds): Promise<string> {
  const address = (await server.exec(sandbox, 'echo "$http_proxy"')).trim()
  const [, hostAndPort] = /^http:\/\/(?:[^@]*@)?([^/]+)/.exec(address) ?? []
  if (hostAndPort === undefined) throw new LeftOut('the backend has no egress proxy')
  return hostAndPort
}
