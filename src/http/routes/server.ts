import { Elysia } from 'elysia'
import type { Runtime } from '../../core/runtime.ts'
import { checkServer, describeServer, getLastSelftest } from '../../core/server/about-server.ts'
import { getCaller } from '../caller.ts'

export const serverRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/server' })
    .get('/', ({ request }) => describeServer(runtime, getCaller(request)))
    .get('/checks', async ({ request }) => ({ checks: await checkServer(runtime, getCaller(request)) }))
    .get('/selftest', async ({ request }) => ({ selftest: await getLastSelftest(runtime, getCaller(request)) }))
