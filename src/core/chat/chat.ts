import type { Database } from 'bun:sqlite'
import { findDeployment } from '../../db/deployments.ts'
import { inTransaction } from '../../db/open.ts'
import { findThread } from '../../db/threads.ts'
import { ApiError } from '../../errors.ts'
import type { Agent } from '../../model/agent.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Thread } from '../../model/thread.ts'
import type { Engine, Turn } from '../../plugin-api/index.ts'
import type { Watched } from '../../runs/registry.ts'
import type { Run } from '../../runs/run.ts'
import type { Caller } from '../access/caller.ts'
import { getAgent } from '../agents/agents.ts'
import { withOperatorChoices } from '../agents/operator-choices.ts'
import type { Runtime } from '../runtime.ts'
import { type Asked, findQuestion, type Identified, identify, type Posted } from './asked.ts'
import { choosePlace, type PlaceRequest } from './chat-place.ts'
import { planTurn } from './plan-turn.ts'
import { cutThread } from './threads.ts'
import { runTurn } from './turn.ts'
import { toRunEvents } from './turn-events.ts'
import { type ChatOptions, limitToAgent } from './turn-options.ts'

export interface ChatRequest extends Posted, PlaceRequest {
  background: boolean
  options: ChatOptions
}

/** A run, and its stream when it is no background run. */
export interface StartedChat {
  run: Run
  watched: Watched | undefined
}

/** Starts a run that answers the last user message. It has a reader at once: no other message can take its place. */
export async function startChat(
  runtime: Runtime,
  caller: Caller,
  slug: string,
  request: ChatRequest,
  signal: AbortSignal,
): Promise<StartedChat> {
  const current = getAgent(runtime, caller, slug)
  getEngine(runtime, current)
  await runtime.diskSpace.assertEnough()
  const identified = identify(request)
  const asked = findQuestion(identified)
  const { sandbox, thread } = await choosePlace(runtime, caller, slug, request, signal)
  const { id, sandboxId } = thread
  while (runtime.runs.activeOn(id)) await runtime.runs.supersede(id)
  const agent = asOfSandbox(runtime.db, current, sandbox)
  const engine = getEngine(runtime, agent)
  // Looked up again: it may have been deleted, or got its engine's session, while its run was ended.
  const free = findThread(runtime.db, sandboxId, id)
  if (!free) throw new ApiError('thread_not_found', 'There is no such thread.')
  const place = { agent, engine, sandbox, thread: free, ...(caller.keyId && { keyId: caller.keyId }) }
  const run = startRun(runtime, place, asked, identified)
  return { run, watched: request.background ? undefined : runtime.runs.watch(run) }
}

/** Returns the agent as it was when the sandbox was made, if that is a version that it still has; else as it is now. */
function asOfSandbox(db: Database, current: Agent, { deploymentId }: Sandbox): Agent {
  if (deploymentId === undefined || deploymentId === current.deploymentId) return current
  const deployment = findDeployment(db, deploymentId)
  return deployment?.agentId === current.id
    ? { ...current, ...withOperatorChoices(deployment.definition, current) }
    : current
}

interface RunPlace {
  agent: Agent
  engine: Engine
  sandbox: Sandbox
  thread: Thread
  keyId?: string
}

/** Takes a thread that is free. Nothing is awaited between the look and the taking. */
const startRun = (
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
    const { turnOptions, budgets } = limitToAgent(agent.options, request.options)
    const chat = { ...place, threadId: thread.id, turn, options: turnOptions, budgets }
    const init = {
      threadId: thread.id,
      sandboxId: sandbox.id,
      background: request.background,
      engine: engine.name,
      messages,
      ...(model !== undefined && { model }),
    }
    return runtime.runs.start(init, (signal, runId) => toRunEvents(runTurn(runtime, chat, { signal, runId })))
  })

/** Throws invalid_request when the server has no engine of the agent's. */
function getEngine({ engines }: Runtime, agent: Agent): Engine {
  const engine = engines.get(agent.engine)
  if (!engine) throw new ApiError('invalid_request', `The agent's engine ${agent.engine} is not here.`)
  return engine
}
