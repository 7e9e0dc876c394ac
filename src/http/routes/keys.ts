import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { createOwnKey, listOwnKeys, revokeOwnKey } from '../../core/access/team-keys.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { ApiKey } from '../../model/key.ts'
import { scopes } from '../../model/scope.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'

const MAX_DAYS = 99_999
/** More limits than there are names for. */
const MAX_LIMITS = 100
const DAY_MS = 86_400_000

const CreateKey = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: bounds.id }),
    scopes: Type.Optional(
      Type.Array(Type.Enum(Object.fromEntries(scopes.map(scope => [scope, scope]))), {
        minItems: 1,
        uniqueItems: true,
        description: 'What it may do; default: everything.',
      }),
    ),
    limits: Type.Optional(
      Type.Record(
        Type.String({ maxLength: bounds.word }),
        Type.Union([Type.String({ maxLength: bounds.word }), Type.Integer({ minimum: 0 })]),
        {
          maxProperties: MAX_LIMITS,
          description: 'Limits below those of the server: `{"requests":"5/s","runs":2}`.',
        },
      ),
    ),
    expiresInDays: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_DAYS })),
  },
  { additionalProperties: false },
)

export const keyRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/keys' })
    .get('/', ({ request }) => ({ keys: listOwnKeys(runtime, getCaller(request)).map(show) }))
    .post(
      '/',
      ({ request, body: { name, expiresInDays, scopes, limits = {} }, status }) => {
        const lifetimeMs = expiresInDays === undefined ? undefined : expiresInDays * DAY_MS
        const { key, row } = createOwnKey(runtime, getCaller(request), {
          name,
          limits: Object.fromEntries(Object.entries(limits).map(([limit, value]) => [limit, String(value)])),
          ...(scopes && { scopes }),
          ...(lifetimeMs !== undefined && { lifetimeMs }),
        })
        return status(201, { ...show(row), key })
      },
      json(CreateKey),
    )
    .delete(
      '/:keyId',
      ({ request, params: { keyId }, status }) => {
        revokeOwnKey(runtime, getCaller(request), keyId)
        return status(204, undefined)
      },
      { params: Type.Object({ keyId: Type.String() }) },
    )

const show = ({ id, name, hint, createdAt, expiresAt, revokedAt, scopes, limits }: ApiKey) => ({
  id,
  name,
  hint,
  createdAt,
  expiresAt: expiresAt ?? null,
  revokedAt: revokedAt ?? null,
  scopes: scopes ?? null,
  limits: limits ?? null,
})
