import type { Database } from 'bun:sqlite'
import { findDeployment } from '../../db/deployments.ts'
import { keepSteeringFirst } from '../../db/queued-messages.ts'
import { rulesFor } from '../../db/remembered-rules.ts'
import { ApiError } from '../../errors.ts'
import type { Agent } from '../../model/agent.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Thread } from '../../model/thread.ts'
import type { Engine, Turn } from '../../plugin-api/index.ts'
import type { Run } from '../../runs/run.ts'
import type { RunInit } from '../../runs/run-init.ts'
import { withOperatorChoices } from '../agents/operator-choices.ts'
import { steeringParts, takeSteered } from '../queue/take-steered.ts'
import type { Runtime } from '../runtime.ts'
import { createRecord } from './record-calls.ts'
import type { RunPlace, RunRequest, RunWork } from './run-request.ts'
import { runTurn } from './turn.ts'
import { failWith, toRunEvents } from './turn-events.ts'
import { type ChatOptions, limitToAgent } from './turn-options.ts'

/** Takes a thread that is free. Throws invalid_request when the engine lacks what is asked. */
export function startTurn(runtime: Runtime, place: RunPlace, request: RunRequest, work: RunWork): Run {
  const { agent, engine, sandbox, thread } = place
  const { options, keyId } = request
  assertSupported(engine, options)
  assertGoesOn(engine, work)
  const model = options.model ?? agent.model
  const systemPrompt = options.systemPrompt ?? agent.systemPrompt
  const turn: Turn = {
    ...work.turn,
    ...(model !== undefined && { model }),
    ...(systemPrompt !== undefined && { systemPrompt }),
    ...(thread.engineSessionId !== undefined && work.keepsSession && { engineSessionId: thread.engineSessionId }),
  }
  const bounds = limitToAgent(agent.options, options)
  const { turnOptions, budgets, chatRules, profile } = bounds
  const clientTools = engine.supports?.includes('clientTools') ? bounds.clientTools : {}
  const steering = engine.supports?.includes('steering') ? runtime.steerings.open(thread.id) : undefined
  const chat = {
    ...{ agent, engine, sandbox, threadId: thread.id, turn, options: turnOptions, budgets, chatRules, clientTools },
    ...(keyId !== undefined && { keyId }),
    ...(steering && { steering }),
    ...(place.cause && { cause: place.cause }),
    remembered: rulesFor(runtime.db, { teamId: sandbox.teamId, agentSlug: agent.slug, threadId: thread.id }),
  }
  keepSteeringFirst(runtime.db, thread.id)
  const recordCalls = createRecord(runtime.db, place, {
    request: { ...request, agentSlug: agent.slug },
    clientTools,
    continues: work.turn.continues,
  })
  const init: RunInit = {
    ...work.init,
    threadId: thread.id,
    sandboxId: sandbox.id,
    teamId: sandbox.teamId,
    agentSlug: agent.slug,
    ...(place.cause && { cause: place.cause }),
    engine: engine.name,
    profile,
    clientTools: Object.keys(clientTools),
    record: (event, run) => {
      if (event.type === 'steering') takeSteered(runtime.db, thread.id, event.id, run.messageId)
      recordCalls(event, run)
    },
    ...(model !== undefined && { model }),
  }
  const partsOf = (messageId: string) => steeringParts(runtime.db, thread.id, messageId)
  const { failure } = work
  const run =
    failure === undefined
      ? runtime.runs.start(init, (signal, runId) => toRunEvents(runTurn(runtime, chat, { signal, runId }), partsOf))
      : runtime.runs.start(init, () => failWith('budget_exceeded', failure))
  const slot = place.slot ?? countRun(runtime, sandbox, thread, keyId)
  void run.finished.then(() => slot[Symbol.dispose]())
  return run
}

/**
 * Counts a run that continues an earlier request, for its key and end user. It is never refused, because nobody would ask again.
 */
function countRun({ limits }: Runtime, { teamId }: Sandbox, thread: Thread, keyId: string | undefined): Disposable {
  return limits.openAnyway('runs', { teamId, ...(keyId !== undefined && { keyId }) }, thread.externalUserId)
}

function assertSupported(engine: Engine, { clientTools = {} }: ChatOptions): void {
  if (Object.keys(clientTools).length > 0 && !engine.supports?.includes('clientTools')) {
    throw new ApiError('invalid_request', `tools: the agent's engine ${engine.name} cannot call tools of the client`, {
      field: 'tools',
    })
  }
}

/** The agent may have had another engine when the reply began. */
function assertGoesOn({ name, supports }: Engine, { turn: { continues }, failure }: RunWork): void {
  if (!continues || failure !== undefined) return
  const isForPeople = (type: string) => type === 'approved' || type === 'denied'
  const needs = continues.answers.map(({ type }) => (isForPeople(type) ? 'approvals' : 'clientTools'))
  if (needs.some(feature => !supports?.includes(feature)))
    throw new ApiError('invalid_request', `The agent's engine ${name} cannot go on with what another one has begun.`)
}

/** Throws invalid_request when the server has no engine of the agent's. */
export function getEngine({ engines }: Runtime, agent: Agent): Engine {
  const engine = engines.get(agent.engine)
  if (!engine) throw new ApiError('invalid_request', `The agent's engine ${agent.engine} is not here.`)
  return engine
}

/** The agent and the engine that answer in a sandbox. Throws invalid_request when the engine is not here. */
export function chooseAgent(runtime: Runtime, current: Agent, sandbox: Sandbox): { agent: Agent; engine: Engine } {
  const agent = asOfSandbox(runtime.db, current, sandbox)
  return { agent, engine: getEngine(runtime, agent) }
}

/** Returns the agent as it was when the sandbox was made, if that is a version that it still has; else as it is now. */
function asOfSandbox(db: Database, current: Agent, { deploymentId }: Sandbox): Agent {
  if (deploymentId === undefined || deploymentId === current.deploymentId) return current
  const deployment = findDeployment(db, deploymentId)
  if (deployment?.agentId !== current.id) return current
  // A setting that the version leaves out, such as a model, is not taken from the present agent either.
  const { model: _, systemPrompt: __, ...rest } = current
  return { ...rest, ...withOperatorChoices(deployment.definition, current) }
}
