import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import { listVisibleThreads } from '../../core/chat/threads.ts'
import type { Runtime } from '../../core/runtime.ts'
import { changeNetwork, describeNetwork } from '../../core/sandboxes/networks.ts'
import { createSandbox, getSandbox, listVisibleSandboxes, removeSandbox } from '../../core/sandboxes/sandboxes.ts'
import { ApiError } from '../../errors.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'
import {
  ExternalUserId,
  FileContents,
  Id,
  isAbsolutePath,
  NO_NUL,
  PageSize,
  SandboxParams,
  Variables,
} from '../schema.ts'

const Rules = Type.Array(Type.String({ minLength: 1, maxLength: bounds.networkRule }), {
  maxItems: bounds.networkRules,
  description: 'Domains (`*.example.com`), addresses and CIDRs, each with `:port` or `:from-to`.',
})

const SetUpCommand = Type.String({ minLength: 1, maxLength: bounds.setupCommand, ...NO_NUL })

const CreateSandbox = Type.Object({
  agent: Type.String({ maxLength: bounds.slug, description: "The agent's slug." }),
  files: Type.Optional(FileContents),
  envs: Type.Optional(Variables),
  setup: Type.Optional(Type.Array(SetUpCommand, { maxItems: bounds.setupCommands })),
  timeoutMs: Type.Optional(
    Type.Integer({
      minimum: 1000,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Time to live since the last use.',
    }),
  ),
  networkAllowOut: Type.Optional(Rules),
  networkDenyOut: Type.Optional(Rules),
  externalUserId: Type.Optional(ExternalUserId),
})

/** Null removes a list. */
const ChangeSandbox = Type.Object({
  networkAllowOut: Type.Optional(Type.Union([Rules, Type.Null()])),
  networkDenyOut: Type.Optional(Type.Union([Rules, Type.Null()])),
})

const Page = Type.Object({
  limit: Type.Optional(PageSize),
  before: Type.Optional(Id),
})

const DEFAULT_PAGE = 50

export const sandboxRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/sandboxes' })
    .post(
      '/',
      async ({ request, body, status }) => {
        assertPaths(body.files)
        const sandbox = await createSandbox(runtime, getCaller(request), body, request.signal)
        const { id, environmentId, createdAt } = sandbox
        return status(201, { id, sandboxId: environmentId, status: sandbox.status, createdAt })
      },
      json(CreateSandbox),
    )
    .get(
      '/',
      ({ request, query: { limit, before } }) => {
        const size = Number(limit ?? DEFAULT_PAGE)
        const found = listVisibleSandboxes(runtime, getCaller(request), { limit: size + 1, ...(before && { before }) })
        const sandboxes = found.slice(0, size).map(sandbox => summary(runtime, sandbox))
        return { sandboxes, nextBefore: found.length > size ? (sandboxes.at(-1)?.id ?? null) : null }
      },
      { query: Page },
    )
    .get(
      '/:sandboxId',
      async ({ request, params: { sandboxId } }) => {
        const caller = getCaller(request)
        const sandbox = getSandbox(runtime, caller, sandboxId)
        const threads = listVisibleThreads(runtime, caller, sandbox)
        return {
          ...summary(runtime, sandbox),
          threads: threads.map(({ id, name, status }) => ({ id, name, status })),
          isolation: await getIsolation(runtime, sandbox),
          network: describeNetwork(runtime, sandbox),
        }
      },
      { params: SandboxParams },
    )
    .patch(
      '/:sandboxId',
      async ({ request, params: { sandboxId }, body }) => {
        const caller = getCaller(request)
        const sandbox = await changeNetwork(runtime, caller, getSandbox(runtime, caller, sandboxId), body)
        return { ...summary(runtime, sandbox), network: describeNetwork(runtime, sandbox) }
      },
      { params: SandboxParams, ...json(ChangeSandbox) },
    )
    .delete(
      '/:sandboxId',
      async ({ request, params: { sandboxId }, status }) => {
        await removeSandbox(runtime, getSandbox(runtime, getCaller(request), sandboxId))
        return status(204, undefined)
      },
      { params: SandboxParams },
    )

function summary({ environments }: Runtime, sandbox: Sandbox) {
  const trouble = environments.troubleOf(sandbox)
  return {
    id: sandbox.id,
    sandboxId: sandbox.environmentId,
    status: trouble === undefined ? sandbox.status : 'error',
    error: trouble ?? sandbox.error ?? null,
    agent: { slug: sandbox.agentSlug, name: sandbox.agentName },
    provider: sandbox.backend,
    createdAt: sandbox.createdAt,
    updatedAt: sandbox.updatedAt,
  }
}

/** What confines a sandbox. An environment that cannot be opened has no details; its sandbox is shown all the same. */
async function getIsolation({ backends, environments }: Runtime, sandbox: Sandbox) {
  const kind = backends.get(sandbox.backend)?.isolation ?? null
  const environment = await environments.get(sandbox).catch(() => undefined)
  return { kind, details: environment?.confinement ?? [] }
}

function assertPaths(files: Readonly<Record<string, string>> = {}): void {
  for (const path of Object.keys(files)) {
    if (!isAbsolutePath(path)) {
      throw new ApiError('invalid_request', 'files: every key must be an absolute path', { field: 'files' })
    }
  }
}
