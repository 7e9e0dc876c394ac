import { type Static, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import type { Caller } from '../../core/access/caller.ts'
import { IsolationClass } from '../../core/agents/agent-files.ts'
import { stopSandbox } from '../../core/chat/stop-sandbox.ts'
import { visibleThreadPages } from '../../core/chat/threads.ts'
import type { Runtime } from '../../core/runtime.ts'
import { changeBindings } from '../../core/sandboxes/change-bindings.ts'
import type { CreateStep, OnCreateStep } from '../../core/sandboxes/create-steps.ts'
import { describeSecrets } from '../../core/sandboxes/describe-secrets.ts'
import { listDecisions } from '../../core/sandboxes/network-decisions.ts'
import { changeNetwork, describeNetwork } from '../../core/sandboxes/networks.ts'
import { createSandbox, getSandbox, listVisibleSandboxes, removeSandbox } from '../../core/sandboxes/sandboxes.ts'
import { findVariableNames } from '../../core/sandboxes/variable-names.ts'
import { Bindings, readBindings } from '../../core/secrets/bindings.ts'
import { createFromSnapshot } from '../../core/snapshots/create-from-snapshot.ts'
import { ApiError } from '../../errors.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'
import { describeEnvironment, describeUse, summaries, summary } from '../describe-sandbox.ts'
import { answerWithEvents, type EventSink, wantsEvents } from '../event-answer.ts'
import { inPieces } from '../pieces.ts'
import {
  ExternalUserId,
  FileContents,
  Id,
  isAbsolutePath,
  NO_NUL,
  PageSize,
  SandboxParams,
  Slug,
  Variables,
} from '../schema.ts'

const Rules = Type.Array(Type.String({ minLength: 1, maxLength: bounds.networkRule }), {
  maxItems: bounds.networkRules,
  description: 'Domains (`*.example.com`), addresses and CIDRs, each with `:port` or `:from-to`.',
})

const SetUpCommand = Type.String({ minLength: 1, maxLength: bounds.setupCommand, ...NO_NUL })

const SandboxName = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$',
  description:
    'Letters, digits, dots, hyphens and underscores. A team has a name once; `GET /v1/sandboxes?name=` finds it.',
  errorMessage: 'must be 1 to 128 letters, digits, dots, hyphens and underscores',
})

const CreateSandbox = Type.Object({
  agent: Type.Optional(
    Type.String({
      maxLength: bounds.slug,
      description: "The agent's slug. Needed without `snapshot`, whose agent it is else.",
    }),
  ),
  snapshot: Type.Optional(
    Type.String({
      maxLength: bounds.id,
      description: "Id or name of a snapshot, in place of the agent's own files and set-up.",
    }),
  ),
  name: Type.Optional(SandboxName),
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
  secrets: Type.Optional(Bindings),
  isolation: Type.Optional(IsolationClass),
})

/** Null removes a list. `secrets` takes the place of all bindings. */
const ChangeSandbox = Type.Object({
  networkAllowOut: Type.Optional(Type.Union([Rules, Type.Null()])),
  networkDenyOut: Type.Optional(Type.Union([Rules, Type.Null()])),
  secrets: Type.Optional(Bindings),
})

const Page = Type.Object({
  limit: Type.Optional(PageSize),
  before: Type.Optional(Id),
  agent: Type.Optional(Slug),
  q: Type.Optional(Type.String({ maxLength: bounds.id, description: 'A part of its id, or of its `sandboxId`.' })),
  name: Type.Optional(Type.String({ maxLength: bounds.id, description: 'Only the one of this name.' })),
})

const DEFAULT_PAGE = 50

export const sandboxRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/sandboxes' })
    .post(
      '/',
      async ({ request, body, status }) => {
        assertPaths(body.files)
        const caller = getCaller(request)
        if (!wantsEvents(request)) return status(201, toCreated(await create(runtime, caller, body, request.signal)))
        const work = async (sink: EventSink, signal: AbortSignal) => {
          const sandbox = await create(runtime, caller, body, signal, step => sendStep(sink, step))
          await sink.send({ type: 'ready', sandbox: toCreated(sandbox) })
        }
        return await answerWithEvents(work, { failure: 'The sandbox could not be made.', signal: request.signal })
      },
      json(CreateSandbox),
    )
    .get(
      '/',
      async ({ request, query: { limit, before, agent, q, name } }) => {
        const size = Number(limit ?? DEFAULT_PAGE)
        const found = listVisibleSandboxes(runtime, getCaller(request), {
          limit: size + 1,
          ...(before && { before }),
          ...(agent && { agent }),
          ...(q && { search: q }),
          ...(name && { name }),
        })
        const sandboxes = await summaries(runtime, found.slice(0, size))
        return { sandboxes, nextBefore: found.length > size ? (sandboxes.at(-1)?.id ?? null) : null }
      },
      { query: Page },
    )
    .get(
      '/:sandboxId',
      async ({ request, params: { sandboxId } }) => {
        const caller = getCaller(request)
        const sandbox = getSandbox(runtime, caller, sandboxId)
        const fields = {
          ...(await summary(runtime, sandbox)),
          ...(await describeEnvironment(runtime, sandbox)),
          cwd: sandbox.cwd,
          variables: findVariableNames(caller, sandbox) ?? null,
          network: describeNetwork(runtime, sandbox),
          secrets: describeSecrets(caller, sandbox) ?? null,
        }
        const threads = visibleThreadPages(runtime, caller, sandbox)
        const pages = threads.map(page => page.map(({ id, name, status }) => ({ id, name, status })))
        return inPieces(pages, { fields, name: 'threads' })
      },
      { params: SandboxParams },
    )
    .patch(
      '/:sandboxId',
      async ({ request, params: { sandboxId }, body }) => {
        const caller = getCaller(request)
        const { secrets, ...rules } = body
        const before = getSandbox(runtime, caller, sandboxId)
        const sandbox = secrets
          ? await changeBindings(runtime, caller, before, { ...rules, bindings: readBindings('secrets', secrets) })
          : await changeNetwork(runtime, caller, before, rules)
        return {
          ...(await summary(runtime, sandbox)),
          network: describeNetwork(runtime, sandbox),
          secrets: describeSecrets(caller, sandbox) ?? null,
        }
      },
      { params: SandboxParams, ...json(ChangeSandbox) },
    )
    .get(
      '/:sandboxId/network/decisions',
      ({ request, params: { sandboxId } }) => {
        return { decisions: listDecisions(runtime, getSandbox(runtime, getCaller(request), sandboxId)) }
      },
      { params: SandboxParams },
    )
    .get(
      '/:sandboxId/stats',
      ({ request, params: { sandboxId } }) => {
        const { environmentId } = getSandbox(runtime, getCaller(request), sandboxId)
        const { uses } = runtime
        return { everyMs: uses.everyMs, samples: uses.samples(environmentId).map(describeUse) }
      },
      { params: SandboxParams },
    )
    .post(
      '/:sandboxId/stop',
      async ({ request, params: { sandboxId } }) => {
        const sandbox = getSandbox(runtime, getCaller(request), sandboxId)
        await stopSandbox(runtime, sandbox, getCaller(request))
        return await summary(runtime, sandbox)
      },
      { params: SandboxParams },
    )
    .delete(
      '/:sandboxId',
      async ({ request, params: { sandboxId }, status }) => {
        const caller = getCaller(request)
        await removeSandbox(runtime, getSandbox(runtime, caller, sandboxId), caller)
        return status(204, undefined)
      },
      { params: SandboxParams },
    )

function create(
  runtime: Runtime,
  caller: Caller,
  { agent, snapshot, ...request }: Static<typeof CreateSandbox>,
  signal: AbortSignal,
  onStep?: OnCreateStep,
): Promise<Sandbox> {
  if (snapshot !== undefined) {
    const options = { signal, ...(onStep && { onStep }) }
    return createFromSnapshot(runtime, caller, { snapshot, ...(agent !== undefined && { agent }), ...request }, options)
  }
  if (agent === undefined) throw new ApiError('invalid_request', 'agent: required', { field: 'agent' })
  return createSandbox(runtime, caller, { agent, ...request }, signal, onStep)
}

const toCreated = ({ id, environmentId, status, createdAt }: Sandbox) => ({
  id,
  sandboxId: environmentId,
  status,
  createdAt,
})

/** Sends a step of a create. Waits for the reader of a command's output; of progress, a slow reader gets less. */
function sendStep(sink: EventSink, step: CreateStep): Promise<void> | undefined {
  if (step.type === 'progress' && !sink.hasRoom) return undefined
  const sent = sink.send(step)
  if (step.type === 'stdout' || step.type === 'stderr') return sent
  // The signal of the work reports that the reader has gone.
  void sent.catch(() => {})
  return undefined
}

function assertPaths(files: Readonly<Record<string, string>> = {}): void {
  for (const path of Object.keys(files)) {
    if (!isAbsolutePath(path)) {
      throw new ApiError('invalid_request', 'files: every key must be an absolute path', { field: 'files' })
    }
  }
}
