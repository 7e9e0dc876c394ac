import type { Database } from 'bun:sqlite'
import { findDeployment } from '../../db/deployments.ts'
import { inTransaction } from '../../db/open.ts'
import { keepSteeringFirst } from '../../db/queued-messages.ts'
import { findThread } from '../../db/threads.ts'
import { ApiError } from '../../errors.ts'
import type { Agent } from '../../model/agent.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Thread } from '../../model/thread.ts'
import type { Engine, Turn } from '../../plugin-api/index.ts'
import type { Watched } from '../../runs/registry.ts'
import type { Run } from '../../runs/run.ts'
import type { RunEvent } from '../../stream/run-event.ts'
import type { Caller } from '../access/caller.ts'
import { getAgent } from '../agents/agents.ts'
import { withOperatorChoices } from '../agents/operator-choices.ts'
import { type Enqueued, isBusy } from '../queue/enqueue.ts'
import { steeringParts, takeSteered } from '../queue/take-steered.ts'
import type { Runtime } from '../runtime.ts'
import { type Asked, findQuestion, type Identified, identify } from './asked.ts'
import { cutThread } from './branches.ts'
import { choosePlace } from './chat-place.ts'
import type { ChatRequest } from './chat-request.ts'
import { enqueueChat } from './enqueue-chat.ts'
import { planTurn } from './plan-turn.ts'
import { giveTitle } from './title.ts'
import { runTurn } from './turn.ts'
import { toRunEvents } from './turn-events.ts'
import { limitToAgent } from './turn-options.ts'

/** A run, and its stream when it is no background run. */
export interface StartedChat {
  run: Run
  watched: Watched | undefined
}

/**
 * Starts a run that answers the last user message. It has a reader at once: no other message can take its place. In a thread
 * that is busy the message may wait, if it is to.
 */
export function startChat(
  runtime: Runtime,
  caller: Caller,
  slug: string,
  request: ChatRequest & { whenBusy?: 'reject' },
  signal: AbortSignal,
): Promise<StartedChat>
export function startChat(
  runtime: Runtime,
  caller: Caller,
  slug: string,
  request: ChatRequest,
  signal: AbortSignal,
): Promise<StartedChat | Enqueued>
export async function startChat(
  runtime: Runtime,
  caller: Caller,
  slug: string,
  request: ChatRequest,
  signal: AbortSignal,
): Promise<StartedChat | Enqueued> {
  const current = getAgent(runtime, caller, slug)
  getEngine(runtime, current)
  await runtime.diskSpace.assertEnough()
  const identified = identify(request)
  const asked = findQuestion(identified)
  const { sandbox, thread } = await choosePlace(runtime, caller, slug, request, signal)
  const { id, sandboxId } = thread
  if (request.whenBusy === undefined || request.whenBusy === 'reject') {
    while (runtime.runs.activeOn(id)) await runtime.runs.supersede(id)
  } else if (isBusy(runtime, thread)) {
    return enqueueChat(runtime, caller, slug, thread, asked, identified)
  }
  const { agent, engine } = chooseAgent(runtime, current, sandbox)
  // Looked up again: it may have been deleted, or got its engine's session, while its run was ended.
  const free = findThread(runtime.db, sandboxId, id)
  if (!free) throw new ApiError('thread_not_found', 'There is no such thread.')
  const place: RunPlace = { agent, engine, sandbox, thread: free, ...(caller.keyId && { keyId: caller.keyId }) }
  const run = startRun(runtime, place, asked, identified)
  return { run, watched: request.background ? undefined : runtime.runs.watch(run) }
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
  return deployment?.agentId === current.id
    ? { ...current, ...withOperatorChoices(deployment.definition, current) }
    : current
}

export interface RunPlace {
  agent: Agent
  engine: Engine
  sandbox: Sandbox
  thread: Thread
  keyId?: string
}

/** Takes a thread that is free. Nothing is awaited between the look and the taking. */
export const startRun = (
  runtime: Runtime,
  { thread, ...place }: RunPlace,
  asked: Asked,
  request: ChatRequest & Identified,
): Run =>
  inTransaction(runtime.db, () => {
    const { agent, engine, sandbox } = place
    const { prompt, history, messages, cut } = planTurn(runtime.db, thread.id, asked, request)
    if (cut) cutThread(runtime.db, thread.id, cut.from)
    const model = request.options.model ?? agent.model
    const systemPrompt = request.options.systemPrompt ?? agent.systemPrompt
    const turn: Turn = {
      prompt,
      history,
      ...(model !== undefined && { model }),
      ...(systemPrompt !== undefined && { systemPrompt }),
      ...(thread.engineSessionId !== undefined && !cut && { engineSessionId: thread.engineSessionId }),
    }
    const bounds = limitToAgent(agent.options, request.options)
    const { turnOptions, budgets, chatRules, profile } = bounds
    const clientTools = engine.supports?.includes('clientTools') ? bounds.clientTools : {}
    const steering = engine.supports?.includes('steering') ? runtime.steerings.open(thread.id) : undefined
    const limits = { options: turnOptions, budgets, chatRules, clientTools }
    const chat = { ...place, threadId: thread.id, turn, ...limits, ...(steering && { steering }) }
    keepSteeringFirst(runtime.db, thread.id)
    giveTitle(runtime.db, thread, messages)
    const init = {
      threadId: thread.id,
      sandboxId: sandbox.id,
      background: request.background,
      engine: engine.name,
      messages,
      profile,
      clientTools: Object.keys(clientTools),
      record: (event: RunEvent, { messageId }: { messageId: string }) => {
        if (event.type === 'steering') takeSteered(runtime.db, thread.id, event.id, messageId)
      },
      ...(model !== undefined && { model }),
    }
    const partsOf = (messageId: string) => steeringParts(runtime.db, thread.id, messageId)
    return runtime.runs.start(init, (signal, runId) => toRunEvents(runTurn(runtime, chat, { signal, runId }), partsOf))
  })

/** Throws invalid_request when the server has no engine of the agent's. */
function getEngine({ engines }: Runtime, agent: Agent): Engine {
  const engine = engines.get(agent.engine)
  if (!engine) throw new ApiError('invalid_request', `The agent's engine ${agent.engine} is not here.`)
  return engine
}
