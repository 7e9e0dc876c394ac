import type { Database } from 'bun:sqlite'
import type { Agent } from '../db/agents.ts'
import { whenFree } from '../db/busy.ts'
import { findDeployment } from '../db/deployments.ts'
import { listMessages } from '../db/messages.ts'
import { inTransaction } from '../db/open.ts'
import type { Sandbox } from '../db/sandboxes.ts'
import type { Thread } from '../db/threads.ts'
import { ApiError } from '../errors.ts'
import type { Engine, Turn } from '../plugin.ts'
import type { Run } from '../runs/run.ts'
import type { Runtime } from '../runtime.ts'
import type { Caller } from './access.ts'
import { type Asked, askedOf, type Posted } from './asked.ts'
import { underOperator } from './deployed-agent.ts'
import { meteredTurn } from './metered-turn.ts'
import { createSandbox, getAgent, getSandbox } from './sandboxes.ts'
import { createThread, cutThread, getThread } from './threads.ts'
import { type ChatOptions, withinAgent } from './turn-options.ts'
import { turnWithTools } from './turn-tools.ts'

export interface ChatRequest extends Posted {
  sandboxId?: string
  threadId?: string
  name?: string
  background: boolean
  externalUserId?: string
  options: ChatOptions
}

/** Starts a run that answers the last user message, by the contract's four routing rules. */
export async function startChat(
  runtime: Runtime,
  caller: Caller,
  slug: string,
  request: ChatRequest,
  signal: AbortSignal,
): Promise<Run> {
  const { sandboxId, threadId } = request
  if (threadId !== undefined && sandboxId === undefined) {
    throw new ApiError('invalid_request', 'threadId: requires sandboxId', { field: 'threadId' })
  }
  const current = getAgent(runtime, caller, slug)
  getEngine(runtime, current)
  await runtime.diskSpace.assertEnough()
  const asked = askedOf(request)
  const start = (sandbox: Sandbox, thread: Thread) => {
    const agent = agentAsMade(runtime.db, current, sandbox)
    const engine = getEngine(runtime, agent)
    const place = { agent, engine, sandbox, thread, asked, ...(caller.keyId && { keyId: caller.keyId }) }
    return startRun(runtime, place, request)
  }
  if (sandboxId === undefined) {
    const { externalUserId } = request
    const wanted = { agent: slug, ...(externalUserId !== undefined && { externalUserId }) }
    const sandbox = await createSandbox(runtime, caller, wanted, signal)
    await whenFree(runtime.db)
    return start(sandbox, createThread(runtime, caller, sandbox, request))
  }
  const sandbox = getSandbox(runtime, caller, sandboxId)
  if (threadId === undefined) {
    return start(sandbox, createThread(runtime, caller, sandbox, request))
  }
  const { id } = getThread(runtime, caller, sandbox, threadId)
  while (runtime.runs.activeOn(id)) await runtime.runs.supersede(id)
  // Looked up again: it may have been deleted, or got its engine's session, while its run was ended.
  return start(sandbox, getThread(runtime, caller, sandbox, id))
}

/** The agent as it was when the sandbox was made, if that is a version that it still has; else as it is now. */
function agentAsMade(db: Database, current: Agent, { deploymentId }: Sandbox): Agent {
  if (deploymentId === undefined || deploymentId === current.deploymentId) return current
  const deployment = findDeployment(db, deploymentId)
  return deployment?.agentId === current.id ? { ...current, ...underOperator(deployment.definition, current) } : current
}

/** Nothing is awaited here: the thread is free, and taken. */
function startRun(
  runtime: Runtime,
  place: { agent: Agent; engine: Engine; sandbox: Sandbox; thread: Thread; asked: Asked; keyId?: string },
  request: ChatRequest,
): Run {
  const { db, runs, environments, gateway, egress } = runtime
  const { agent, engine, sandbox, thread, asked, keyId } = place
  return inTransaction(db, () => {
    const known = listMessages(db, thread.id)
    const prompt = asked.prompt.filter(({ role }) => role === 'user')
    const isNew = known.length === 0
    const edited = known.findIndex(({ id, role }) => id === asked.replaces && role === 'user')
    // A message that is known is answered again.
    const position = edited >= 0 ? edited : known.findIndex(({ id }) => id === prompt[0]?.id)
    const isCut = position >= 0 && (edited >= 0 || asked.isAgain)
    if (isCut) cutThread(db, thread.id, known[edited >= 0 ? position : position + 1]?.id)
    const before = isNew ? asked.before : position >= 0 ? known.slice(0, position) : known
    const model = request.options.model ?? agent.model
    const { turnOptions, budgets } = withinAgent(agent.options, request.options)
    const systemPrompt = request.options.systemPrompt ?? agent.systemPrompt
    const turn: Turn = {
      prompt,
      history: before.map(({ id, role, parts }) => ({ id, role, parts })),
      ...(model !== undefined && { model }),
      ...(systemPrompt !== undefined && { systemPrompt }),
      ...(thread.engineSessionId !== undefined && !isCut && { engineSessionId: thread.engineSessionId }),
    }
    const init = {
      threadId: thread.id,
      sandboxId: sandbox.id,
      background: request.background,
      engine: engine.name,
      ...(model !== undefined && { model }),
      // Those that the thread has already are not added again.
      messages: isNew ? [...asked.before, ...asked.prompt] : prompt,
    }
    const run: Run = runs.start(init, async function* (signal) {
      const environment = await environments.get(sandbox)
      const spender = { teamId: sandbox.teamId, agentSlug: agent.slug, sandboxId: sandbox.id, threadId: thread.id }
      const open = () =>
        gateway.open({
          ...spender,
          runId: run.id,
          budgets,
          inside: {
            environmentId: sandbox.environmentId,
            via: runtime.backends.get(sandbox.backend)?.egress === 'own' ? 'public' : 'relay',
          },
          ...(keyId !== undefined && { keyId }),
          ...(model !== undefined && { model }),
        })
      return yield* meteredTurn(open, signal, openModel =>
        turnWithTools(runtime, { agent, sandbox, environment, signal }, turnOptions, options => {
          runtime.loop?.entered(`${run.id} by ${engine.name}`)
          return engine.run(turn, {
            environment,
            cwd: sandbox.cwd,
            env: sandbox.envs,
            signal,
            threadId: thread.id,
            options,
            openModel,
            fetch: (url, init) => egress.fetch(sandbox.environmentId, url, { signal, ...init }),
          })
        }),
      )
    })
    return run
  })
}

/** Throws invalid_request when this build has none of that name. */
function getEngine({ engines }: Runtime, agent: Agent): Engine {
  const engine = engines.get(agent.engine)
  if (!engine) throw new ApiError('invalid_request', `The agent's engine ${agent.engine} is not here.`)
  return engine
}
