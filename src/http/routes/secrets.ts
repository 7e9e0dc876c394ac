import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import type { Runtime } from '../../core/runtime.ts'
import { SecretName } from '../../core/secrets/bindings.ts'
import { listOwnSecrets, removeSecret, setSecret } from '../../core/secrets/secrets.ts'
import type { Secret } from '../../model/secret.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'

const SetSecret = Type.Object(
  { value: Type.String({ maxLength: bounds.secret, description: 'Never told again.' }) },
  { additionalProperties: false },
)
const SecretParams = Type.Object({ name: SecretName })

export const secretRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/secrets' })
    .get('/', ({ request }) => ({
      secrets: listOwnSecrets(runtime, getCaller(request)).map(({ agents, sandboxes, ...secret }) => ({
        ...show(secret),
        agents,
        sandboxes,
      })),
    }))
    .put(
      '/:name',
      ({ request, params: { name }, body: { value } }) => show(setSecret(runtime, getCaller(request), name, value)),
      { params: SecretParams, ...json(SetSecret) },
    )
    .delete(
      '/:name',
      ({ request, params: { name }, status }) => {
        removeSecret(runtime, getCaller(request), name)
        return status(204, undefined)
      },
      { params: SecretParams },
    )

const show = ({ name, createdAt, updatedAt }: Secret) => ({ name, createdAt, updatedAt })
