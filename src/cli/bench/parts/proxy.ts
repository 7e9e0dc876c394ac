import { LeftOut, type Part, type Round } from '../part.ts'
import { PEER_HOST } from '../peer.ts'
import { cpuSeconds } from '../process-figures.ts'
import { MIB, speed, time } from '../time.ts'

const AT_ONCE = 8

/** Measures downloads out of a sandbox, through the proxy that enforces its network rules. */
export const proxy: Part = {
  rounds: 2,
  async measure({ sizes, place, peer, record }: Round) {
    await using server = await place.serve(['--network-private', PEER_HOST])
    const sandbox = await server.create({ networkAllowOut: [`${PEER_HOST}/32`] })
    const address = (await server.exec(sandbox, 'echo "$http_proxy"')).trim()
    const [, through] = /^http:\/\/(?:[^@]*@)?([^/]+)/.exec(address) ?? []
    if (through === undefined) throw new LeftOut('the backend has no egress proxy')
    const origin = new URL(peer.url)
    const count = sizes.downloadMib * MIB
    const outside = (script: string) => Bun.$`bash -c ${script}`.quiet()
    const finished = async () => Number(await (await fetch(`${peer.url}/finished`)).text())
    const measure = async (downloads: number, run: (script: string) => Promise<unknown>, tunnel?: string) => {
      const before = { finished: await finished(), cpu: cpuSeconds(server.pid) }
      const script = toScript(origin, { downloads, bytes: count / downloads, ...(tunnel && { tunnel }) })
      const took = await time(() => run(script))
      if ((await finished()) - before.finished !== downloads) throw new Error('a download was not complete')
      return { speed: speed(count, took), cpu: (cpuSeconds(server.pid) - before.cpu) / (count / MIB / 1024) }
    }
    const inside = (script: string) => server.exec(sandbox, script)

    const direct = await measure(1, outside)
    const one = await measure(1, inside, through)
    record('proxy', [one.speed], [direct.speed])
    record('proxy-cpu', [one.cpu])
    const directEight = await measure(AT_ONCE, outside)
    const eight = await measure(AT_ONCE, inside, through)
    record('proxy-eight', [eight.speed], [directEight.speed])
    await server.delete(sandbox)
  },
}

interface Downloads {
  downloads: number
  /** The size of each download. */
  bytes: number
  /** The host and port of a proxy through which to tunnel. */
  tunnel?: string
}

/** Downloads with bash and cat only, which every sandbox has. */
function toScript({ hostname, port, host }: URL, { downloads, bytes, tunnel }: Downloads): string {
  const [to, toPort] = tunnel === undefined ? [hostname, port] : tunnel.split(':')
  const connect =
    tunnel === undefined
      ? ''
      : `printf 'CONNECT ${host} HTTP/1.1\\r\\nHost: ${host}\\r\\n\\r\\n' >&3
    read -r -u 3 _ status _ && [ "$status" = 200 ] || exit 1
    while read -r -u 3 line && [ "$line" != $'\\r' ]; do :; done`
  return `set -e
  get() {
    exec 3<>/dev/tcp/${to}/${toPort}
    ${connect}
    printf 'GET /stream?count=${bytes} HTTP/1.1\\r\\nHost: ${host}\\r\\nConnection: close\\r\\n\\r\\n' >&3
    read -r -u 3 _ status _ && [ "$status" = 200 ] || exit 1
    cat <&3 > /dev/null
  }
  jobs=()
  for i in {1..${downloads}}; do (get) & jobs+=($!); done
  for job in "\${jobs[@]}"; do wait "$job"; done`
}
