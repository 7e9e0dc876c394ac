import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { createToken } from '../../core/access/tokens.ts'
import type { Runtime } from '../../core/runtime.ts'
import { ApiError } from '../../errors.ts'
import { optionalJson } from '../body.ts'
import { getCaller } from '../caller.ts'
import { Lifetime, lifetimeMs } from '../lifetime.ts'
import { Slug } from '../schema.ts'

/** Unknown fields are refused: one may be meant to restrict the token. */
const CreateToken = Type.Object(
  {
    agents: Type.Optional(Type.Array(Slug, { maxItems: bounds.tokenAgents })),
    agent: Type.Optional(Slug),
    userId: Type.Optional(Type.String({ minLength: 1, maxLength: bounds.id })),
    approve: Type.Optional(
      Type.Boolean({ description: 'Whether it may decide on what agents ask for. Default: it may only see that.' }),
    ),
    expiresIn: Lifetime,
  },
  { additionalProperties: false },
)

export const tokenRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/tokens' }).post(
    '/',
    ({ request, body, status }) => {
      const { agent, userId, approve, expiresIn } = body
      if (agent !== undefined && body.agents) {
        throw new ApiError('invalid_request', 'agent: name one agent, or agents as a list, not both', {
          field: 'agent',
        })
      }
      const agents = agent === undefined ? body.agents : [agent]
      const token = createToken(runtime, getCaller(request), {
        lifetimeMs: lifetimeMs(expiresIn),
        ...(agents && { agents }),
        ...(userId && { userId }),
        ...(approve && { approve }),
      })
      return status(201, token)
    },
    optionalJson(CreateToken),
  )
