import { Elysia } from 'elysia'
import { listBudgets } from '../../core/chat/list-budgets.ts'
import type { Runtime } from '../../core/runtime.ts'
import { getCaller } from '../caller.ts'

export const budgetRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/budgets' }).get('/', async ({ request }) => ({
    budgets: await listBudgets(runtime, getCaller(request)),
  }))
