import type { Config } from '../core/config.ts'
import type { Runtime } from '../core/runtime.ts'
import { messageOf } from '../errors.ts'
import { metricsResponse } from '../http/routes/metrics.ts'

const IDLE_SECONDS = 60

/** Answers `GET /metrics` at its own address, without a key. Throws an error that names the setting. */
export function listenForMetrics(runtime: Runtime, { host, port }: NonNullable<Config['metricsAddress']>) {
  try {
    return Bun.serve({
      hostname: host,
      port,
      idleTimeout: IDLE_SECONDS,
      reusePort: false,
      development: false,
      async fetch({ method, url }) {
        if (new URL(url).pathname !== '/metrics') return new Response('only /metrics is here\n', { status: 404 })
        if (method !== 'GET') return new Response(null, { status: 405, headers: { allow: 'GET' } })
        try {
          return await metricsResponse(runtime)
        } catch (error) {
          runtime.log(`metrics: ${messageOf(error)}`, 'error')
          return new Response(null, { status: 500 })
        }
      },
    })
  } catch (error) {
    throw new Error(`--metrics-address: cannot listen on ${host}:${port}: ${messageOf(error)}`)
  }
}
