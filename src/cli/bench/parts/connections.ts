import { connectScript, type Route } from '../downloads.ts'
import { AT_ONCE, createMeter, type RunScript, runOutside } from '../measure-downloads.ts'
import { LeftOut, type Part, type Round } from '../part.ts'
import type { BenchServer, SandboxIds } from '../server.ts'
import { getProxy } from './proxy.ts'

/** Turns are short, so that other work on the machine affects each kind alike. */
const TURN = 10

/**
 * Measures connections that programs make without knowing a proxy, beside those through the proxy and those without a sandbox.
 * A sandbox keeps loopback addresses to itself, so the bare server has another address for them.
 */
export const connections: Part = {
  rounds: 2,
  async measure({ sizes, place, peer, record }: Round) {
    if (peer.outer === undefined) throw new LeftOut('this machine has no IPv4 address but those of its loopback')
    const origin = new URL(peer.outer.url)
    const greeter = new URL(peer.outer.greeter)
    await using server = await place.serve(['--network-private', `${origin.hostname}/32`])
    const sandbox = await server.create({ networkAllowOut: [`${origin.hostname}/32`] })
    const tunnel = await getProxy(server, sandbox)
    await assertLed(server, sandbox)
    const inside: RunScript = script => server.exec(sandbox, script)
    const measure = createMeter(peer, server, sizes)
    const download = async (downloads: number) => {
      const host = await measure(downloads, { origin }, runOutside)
      const proxied = await measure(downloads, { origin, tunnel }, inside)
      const led = await measure(downloads, { origin }, inside)
      return { host: [host.speed], proxied: [proxied.speed], led: [led.speed], cpu: led.cpu }
    }

    const one = await download(1)
    record('proxied-one', one.proxied, one.host)
    record('led-one', one.led, one.host)
    record('led-cpu', [one.cpu])
    const eight = await download(AT_ONCE)
    record('proxied-eight', eight.proxied, eight.host)
    record('led-eight', eight.led, eight.host)

    const took: Record<'host' | 'proxied' | 'led', number[]> = { host: [], proxied: [], led: [] }
    for (let done = 0; done < sizes.connects; done += TURN) {
      const count = Math.min(TURN, sizes.connects - done)
      took.host.push(...(await connectTimes({ origin: greeter }, runOutside, count)))
      took.proxied.push(...(await connectTimes({ origin: greeter, tunnel }, inside, count)))
      took.led.push(...(await connectTimes({ origin: greeter }, inside, count)))
    }
    record('proxied-connect', took.proxied, took.host)
    record('led-connect', took.led, took.host)
    await server.delete(sandbox)
  },
}

/** Throws LeftOut with the backend's reason when connections of this sandbox are not led to the server. */
async function assertLed(server: BenchServer, { id }: SandboxIds): Promise<void> {
  type Answer = { isolation?: { details?: string[] } }
  const { isolation } = await server.ask<Answer>('GET', `/v1/sandboxes/${id}`)
  const line = isolation?.details?.find(detail => detail.startsWith('network:'))
  if (line?.includes('leads to the server')) return
  throw new LeftOut(line ?? 'the server does not say that connections are led to it')
}

/** The times in ms from the beginning of a connection to the first byte that the server sends. */
async function connectTimes(route: Route, run: RunScript, count: number): Promise<number[]> {
  const printed = (await run(connectScript(route, count))).trim().split('\n')
  const times = printed.map(microseconds => Number(microseconds) / 1000)
  // Bash before version 5 has no clock that is fine enough.
  if (times.length !== count || !times.every(time => time > 0)) throw new LeftOut('it takes bash 5 or newer')
  return times
}
