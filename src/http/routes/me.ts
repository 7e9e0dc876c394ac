import { Elysia } from 'elysia'
import { whoIs } from '../../core/access/access.ts'
import type { Runtime } from '../../core/runtime.ts'
import { callerOf } from '../caller.ts'

export const meRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/me' }).get('/', ({ request }) => whoIs(runtime, callerOf(request)))
