import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { createToken } from '../core/access.ts'
import type { Runtime } from '../runtime.ts'
import { optionalJson } from './body.ts'
import { callerOf } from './caller.ts'

const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const MAX_LIFETIME_MS = unitMs.d
const DEFAULT_LIFETIME_MS = unitMs.h

const CreateToken = Type.Object({
  agents: Type.Optional(Type.Array(Type.String())),
  userId: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  expiresIn: Type.Optional(Type.String({ pattern: '^[1-9][0-9]{0,5}[mhd]$', description: '15m, 1h, 2d; at most 24h' })),
})

export const tokenRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/tokens' }).post(
    '/',
    ({ request, body, status }) => {
      const { agents, userId, expiresIn } = body
      const token = createToken(runtime, callerOf(request), {
        lifetimeMs: expiresIn ? Math.min(lifetimeMs(expiresIn), MAX_LIFETIME_MS) : DEFAULT_LIFETIME_MS,
        ...(agents && { agents }),
        ...(userId && { userId }),
      })
      return status(201, token)
    },
    optionalJson(CreateToken),
  )

function lifetimeMs(text: string): number {
  const unit = text.at(-1)
  return Number(text.slice(0, -1)) * (unit === 'd' ? unitMs.d : unit === 'h' ? unitMs.h : unitMs.m)
}
