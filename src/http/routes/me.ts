import { Elysia } from 'elysia'
import { describeCaller } from '../../core/access/caller.ts'
import type { Runtime } from '../../core/runtime.ts'
import { getCaller } from '../caller.ts'

export const meRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/me' }).get('/', ({ request }) => describeCaller(runtime, getCaller(request)))
