import { CPU, p50, type Row, ratio } from './row.ts'

/** The rows of downloads through the proxy. */
export const proxy = {
  direct: {
    name: 'download without a proxy',
    unit: 'MiB/s',
    taken: '512 MiB from a Bun.serve on this machine, by bash and cat',
  },
  proxy: {
    name: 'download out of a sandbox',
    unit: 'MiB/s',
    baseline: 'direct',
    goal: ratio('≥', 0.5),
    taken: 'the same through a tunnel of the egress proxy',
  },
  'proxy-cpu': { name: 'download out of a sandbox, CPU', unit: 's/GiB', goal: p50(1.2), taken: CPU },
  'direct-eight': { name: 'eight at once without a proxy', unit: 'MiB/s', taken: '64 MiB each' },
  'proxy-eight': {
    name: 'eight at once out of a sandbox',
    unit: 'MiB/s',
    baseline: 'direct-eight',
    goal: ratio('≥', 0.5),
    taken: '64 MiB each, through tunnels',
  },
} as const satisfies Record<string, Row>

/** The rows of connections of programs that know no proxy, beside those through the proxy and those without a sandbox. */
export const connections = {
  'host-one': {
    name: 'download outside of a sandbox',
    unit: 'MiB/s',
    taken: "512 MiB from a Bun.serve at an address of this machine's network, by bash and cat",
  },
  'proxied-one': {
    name: 'download through the proxy',
    unit: 'MiB/s',
    baseline: 'host-one',
    taken: 'the same in a sandbox, through a tunnel of the egress proxy',
  },
  'led-one': {
    name: 'download without knowing a proxy',
    unit: 'MiB/s',
    baseline: 'host-one',
    goal: ratio('≥', 0.5),
    taken: 'the same in a sandbox, by a connection to the address itself, which leads to the server',
  },
  'led-cpu': { name: 'download without knowing a proxy, CPU', unit: 's/GiB', goal: p50(1.2), taken: CPU },
  'host-eight': { name: 'eight at once outside of a sandbox', unit: 'MiB/s', taken: '64 MiB each' },
  'proxied-eight': {
    name: 'eight at once through the proxy',
    unit: 'MiB/s',
    baseline: 'host-eight',
    taken: '64 MiB each, through tunnels',
  },
  'led-eight': {
    name: 'eight at once without knowing a proxy',
    unit: 'MiB/s',
    baseline: 'host-eight',
    goal: ratio('≥', 0.5),
    taken: '64 MiB each, by connections to the address itself',
  },
  'host-connect': {
    name: 'connect + first byte outside of a sandbox',
    unit: 'ms',
    taken: 'one at a time by bash, in short turns with the two below; the server sends a byte at once',
  },
  'proxied-connect': {
    name: 'connect + first byte through the proxy',
    unit: 'ms',
    baseline: 'host-connect',
    taken: 'the same in a sandbox, through a tunnel',
  },
  'led-connect': {
    name: 'connect + first byte without knowing a proxy',
    unit: 'ms',
    baseline: 'host-connect',
    taken: 'the same in a sandbox, by a connection to the address itself',
  },
} as const satisfies Record<string, Row>
