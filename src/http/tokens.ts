import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../bounds.ts'
import { createToken } from '../core/access.ts'
import type { Runtime } from '../runtime.ts'
import { optionalJson } from './body.ts'
import { callerOf } from './caller.ts'
import { Lifetime, lifetimeMs } from './lifetime.ts'
import { Slug } from './schema.ts'

const CreateToken = Type.Object({
  agents: Type.Optional(Type.Array(Slug, { maxItems: bounds.tokenAgents })),
  userId: Type.Optional(Type.String({ minLength: 1, maxLength: bounds.id })),
  expiresIn: Lifetime,
})

export const tokenRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/tokens' }).post(
    '/',
    ({ request, body, status }) => {
      const { agents, userId, expiresIn } = body
      const token = createToken(runtime, callerOf(request), {
        lifetimeMs: lifetimeMs(expiresIn),
        ...(agents && { agents }),
        ...(userId && { userId }),
      })
      return status(201, token)
    },
    optionalJson(CreateToken),
  )
