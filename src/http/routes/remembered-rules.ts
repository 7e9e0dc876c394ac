import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { forgetRemembered, listRemembered } from '../../core/approvals/remember.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { RememberedRule } from '../../model/remembered-rule.ts'
import { getCaller } from '../caller.ts'

export const rememberedRuleRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/agents/:slug/rules' })
    .get(
      '/',
      ({ request, params: { slug } }) => ({ rules: listRemembered(runtime, getCaller(request), slug).map(show) }),
      { params: Type.Object({ slug: Type.String() }) },
    )
    .delete(
      '/:ruleId',
      ({ request, params: { slug, ruleId }, status }) => {
        forgetRemembered(runtime, getCaller(request), slug, ruleId)
        return status(204, undefined)
      },
      { params: Type.Object({ slug: Type.String(), ruleId: Type.String() }) },
    )

const show = ({ id, rule, threadId, createdAt }: RememberedRule) => ({ id, rule, threadId, createdAt })
