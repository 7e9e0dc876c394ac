import type { Database } from 'bun:sqlite'
import type { Agent } from '../../db/agents.ts'
import { findDeployment } from '../../db/deployments.ts'
import { findPlace, idAfter, lastMessages } from '../../db/messages.ts'
import { inTransaction } from '../../db/open.ts'
import type { Sandbox } from '../../db/sandboxes.ts'
import { findThread, type Thread } from '../../db/threads.ts'
import { ApiError } from '../../errors.ts'
import type { Engine, StoredMessage, Turn } from '../../plugin-api/index.ts'
import type { Watched } from '../../runs/registry.ts'
import type { Run } from '../../runs/run.ts'
import type { Caller } from '../access/access.ts'
import { getAgent } from '../agents/agents.ts'
import { withOperatorChoices } from '../agents/operator-choices.ts'
import type { Runtime } from '../runtime.ts'
import { type Asked, askedOf, type Posted } from './asked.ts'
import { withAttachments } from './attachments.ts'
import { type PlaceRequest, placeOf } from './chat-place.ts'
import { meteredTurn } from './metered-turn.ts'
import { callIdsIn, withOwnCallIds } from './own-call-ids.ts'
import { cutThread } from './threads.ts'
import { type ChatOptions, withinAgent } from './turn-options.ts'
import { turnWithTools } from './turn-tools.ts'

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
  const asked = askedOf(request)
  const { sandbox, thread } = await placeOf(runtime, caller, slug, request, signal)
  const { id, sandboxId } = thread
  while (runtime.runs.activeOn(id)) await runtime.runs.supersede(id)
  const agent = agentAsMade(runtime.db, current, sandbox)
  const engine = getEngine(runtime, agent)
  // Looked up again: it may have been deleted, or got its engine's session, while its run was ended.
  const free = findThread(runtime.db, sandboxId, id)
  if (!free) throw new ApiError('thread_not_found', 'There is no such thread.')
  const place = { agent, engine, sandbox, thread: free, asked, ...(caller.keyId && { keyId: caller.keyId }) }
  const run = startRun(runtime, place, request)
  return { run, watched: request.background ? undefined : runtime.runs.watch(run) }
}

/** What an engine is given of a thread, from its end. */
const HISTORY = { messages: 2000, characters: 8 * 1024 * 1024 }

/** The agent as it was when the sandbox was made, if that is a version that it still has; else as it is now. */
function agentAsMade(db: Database, current: Agent, { deploymentId }: Sandbox): Agent {
  if (deploymentId === undefined || deploymentId === current.deploymentId) return current
  const deployment = findDeployment(db, deploymentId)
  return deployment?.agentId === current.id
    ? { ...current, ...withOperatorChoices(deployment.definition, current) }
    : current
}

/** What the user said just before and the thread lacks, as after a 409. Without an id it may be there under another. */
function refusedBefore({ before }: Asked, { ownIds }: Posted, isKnown: (id: string) => boolean): StoredMessage[] {
  const last = before.findLastIndex(({ id, role }) => role !== 'user' || !ownIds?.has(id) || isKnown(id))
  return before.slice(last + 1)
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
    const find = (id: string | undefined) => (id === undefined ? undefined : findPlace(db, thread.id, id))
    const said = asked.prompt.filter(({ role }) => role === 'user')
    const isNew = idAfter(db, thread.id, 0) === undefined
    const replaced = find(asked.replaces)
    const edited = replaced?.role === 'user' ? replaced : undefined
    // A message that is known is answered again.
    const answered = edited ?? find(said[0]?.id)
    const isKnown = (id: string) => find(id) !== undefined
    const prompt = isNew || answered ? said : [...refusedBefore(asked, request, isKnown), ...said]
    const isCut = answered !== undefined && (edited !== undefined || asked.isAgain)
    // Read before the thread is cut, and no more than any model takes: a thread may have any length.
    const before = isNew ? asked.before : lastMessages(db, thread.id, HISTORY, answered?.position)
    if (isCut) cutThread(db, thread.id, edited ? asked.replaces : idAfter(db, thread.id, answered.position))
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
      // What the thread keeps is what the user sent.
      const told = yield* withAttachments([...turn.history, ...turn.prompt], environment.files)
      const history = told.slice(0, turn.history.length)
      const asTold: Turn = { ...turn, history, prompt: told.slice(history.length) }
      return yield* meteredTurn(open, signal, openModel =>
        turnWithTools(runtime, { agent, sandbox, environment, signal }, turnOptions, options => {
          runtime.loop?.entered(`${run.id} by ${engine.name}`)
          const events = engine.run(asTold, {
            environment,
            cwd: sandbox.cwd,
            env: sandbox.envs,
            signal,
            threadId: thread.id,
            options,
            openModel,
            fetch: (url, init) => egress.fetch(sandbox.environmentId, url, { signal, ...init }),
          })
          return withOwnCallIds(events, callIdsIn([...turn.history, ...turn.prompt]))
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
