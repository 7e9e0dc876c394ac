import { Elysia } from 'elysia'
import { PROMETHEUS_TYPE, prometheusText } from '../../core/metrics/prometheus.ts'
import type { Runtime } from '../../core/runtime.ts'
import { assertOperator } from '../../core/server/about-server.ts'
import { getCaller } from '../caller.ts'

/** The figures of the whole server, for Prometheus. */
export const metricsRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/metrics' }).get('/', async ({ request }) => {
    assertOperator(runtime, getCaller(request))
    return await metricsResponse(runtime)
  })

export const metricsResponse = async ({ metrics }: Pick<Runtime, 'metrics'>): Promise<Response> =>
  new Response(prometheusText(await metrics.families()), { headers: { 'content-type': PROMETHEUS_TYPE } })
