import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { causeOf } from '../../core/access/caller.ts'
import type { Runtime } from '../../core/runtime.ts'
import { cloneRepository } from '../../core/sandboxes/git.ts'
import { useSandbox } from '../../core/sandboxes/use-sandbox.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'
import { AbsolutePath, SandboxParams } from '../schema.ts'

const Word = Type.String({
  minLength: 1,
  maxLength: bounds.path,
  pattern: '^[^\\0\\r\\n]*$',
  errorMessage: 'must be one line, without the character U+0000',
})

const Clone = Type.Object({
  url: Word,
  path: Type.Optional(AbsolutePath),
  token: Type.Optional(Word),
  depth: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 })),
  branch: Type.Optional(Word),
})

export const gitRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/sandboxes/:sandboxId/git' }).post(
    '/clone',
    async ({ request, params: { sandboxId }, body }) => {
      using use = await useSandbox(runtime, getCaller(request), sandboxId)
      await runtime.diskSpace.assertEnough()
      runtime.teamLimits.assertRoom(getCaller(request).teamId, 'disk')
      return await cloneRepository(runtime, use, body, causeOf(getCaller(request)), request.signal)
    },
    { params: SandboxParams, ...json(Clone) },
  )
