import { messageOf } from '../../errors.ts'
import type { RunBudgets } from '../../gateway/budgets.ts'
import type { Agent } from '../../model/agent.ts'
import type { Cause } from '../../model/observation.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { ClientTool, Engine, EngineContext, Permissions, Turn, TurnOptions } from '../../plugin-api/index.ts'
import { describeFault } from '../../runs/fault.ts'
import { type LogLine, logAgent } from '../agents/agent-log.ts'
import { createPermissions, type PermissionsInit, type RuleOptions } from '../permissions/decide.ts'
import type { RunSteering, Runtime } from '../runtime.ts'
import { observeSpawns } from '../sandboxes/observe-exec.ts'
import { observeFiles } from '../sandboxes/observed-files.ts'
import { prepareAttachments, withAttachments } from './attachments.ts'
import { toBudgetCallId, withRaises } from './budget-approvals.ts'
import { createLazySession } from './lazy-session.ts'
import { metered } from './metered.ts'
import { observeTools } from './observe-tools.ts'
import { listCallIds, withOwnCallIds } from './own-call-ids.ts'
import { failedByTools, takeToolsLog, withOwnTools } from './own-tools.ts'
import { refuseApproved } from './refuse-approved.ts'
import { withShownParts } from './shown-parts.ts'
import { mapTurn, type TurnEvents } from './turn-events.ts'

/** What one turn is, decided before its run starts. */
export interface ChatTurn {
  agent: Agent
  engine: Engine
  sandbox: Sandbox
  threadId: string
  turn: Turn
  options: TurnOptions
  budgets: RunBudgets
  /** What the chat says of its calls. */
  chatRules: RuleOptions
  /** Rules that a person has approved for good. */
  remembered?: readonly string[]
  /** Empty for an engine that does not support them. */
  clientTools: Readonly<Record<string, ClientTool>>
  /** For an engine that takes messages while it works. */
  steering?: RunSteering
  /** The API key that asked. */
  keyId?: string
  /** Absent when the turn began without a request. */
  cause?: Cause
}

type AddLine = (line: Pick<LogLine, 'source' | 'level' | 'text'>) => void

/** Runs one turn of an agent in its sandbox. What goes wrong, and what its own tools print, is added to the agent's log. */
export async function* runTurn(
  runtime: Runtime,
  chat: ChatTurn,
  { signal, runId }: { signal: AbortSignal; runId: string },
): TurnEvents {
  const { agent, engine, sandbox, threadId } = chat
  const addLine: AddLine = line => logAgent(runtime.db, agent.id, { ...line, sandboxId: sandbox.id }, sandbox.envs)
  const work = { teamId: sandbox.teamId, sandboxId: sandbox.id, runId, cause: chat.cause ?? {} }
  const environment = observeFiles(runtime, work, await runtime.environments.get(sandbox))
  const checked = refuseApproved(chat.turn, permissionsOf(chat, { asks: true, canAsk: true }))
  yield* checked.events
  const turn = yield* tellAttachments(checked.turn, environment.files)
  const model = createLazySession(() => openModel(runtime, chat, runId), signal)
  let { options } = chat
  try {
    if (sandbox.bundle !== undefined) {
      const tools = { env: sandbox.envs, options }
      options = await withOwnTools(environment, runtime.bundles, sandbox.bundle, tools)
    }
  } catch (error) {
    if (signal.aborted) return { status: 'cancelled' }
    addLine({ source: 'engine', level: 'error', text: messageOf(error) })
    return failedByTools(error)
  }
  runtime.loop?.entered(`${runId} by ${engine.name}`)
  const { steering } = chat
  steering?.begin(messages => prepareAttachments(messages, environment.files))
  const { observe } = runtime.observers
  const engineEvents = runEngine(engine, turn, {
    environment: observeSpawns(runtime, environment, { sandbox, runId, ...(chat.cause && { cause: chat.cause }) }),
    cwd: sandbox.cwd,
    env: sandbox.envs,
    signal,
    threadId,
    options,
    permissions: permissionsOf(chat, {
      asks: agent.options.approvals === 'on',
      canAsk: engine.supports?.includes('approvals') ?? false,
    }),
    clientTools: chat.clientTools,
    ...(steering && { steering }),
    openModel: model.access,
    fetch: (url, init) => runtime.egress.fetch(sandbox.environmentId, url, { signal, ...init }),
  })
  const { history, prompt, continues } = turn
  const about = { teamId: sandbox.teamId, sandboxId: sandbox.id, threadId, runId, engine: engine.name }
  const events = observeTools(engineEvents, observe, about, continues)
  const reply = continues && !continues.isLate ? continues.reply.parts : []
  const identified = withOwnCallIds(events, listCallIds([...history, ...prompt]), reply)
  try {
    const asksForBudget = agent.options.onBudget === 'ask' && engine.supports?.includes('approvals')
    const question = asksForBudget ? { callId: toBudgetCallId(runId), budgets: chat.budgets } : undefined
    return yield* metered(logged(withShownParts(identified, reply), addLine), model, signal, question)
  } finally {
    if (sandbox.bundle !== undefined) {
      const text = await takeToolsLog(environment)
      // A turn that has ended well is not failed by a log that cannot be stored.
      try {
        addLine({ source: 'tools', level: 'info', text })
      } catch (error) {
        runtime.log(`${runId}: what its tools printed is not stored: ${describeFault(error)}`)
      }
    }
  }
}

/** By the rules of the agent and of the chat. */
function permissionsOf(
  { agent, sandbox, chatRules, remembered = [], clientTools }: ChatTurn,
  who: Pick<PermissionsInit, 'asks' | 'canAsk'>,
): Permissions {
  return createPermissions({
    agent: agent.options,
    chat: chatRules,
    ...who,
    place: { cwd: sandbox.cwd, home: sandbox.envs.HOME ?? '/home/user' },
    remembered,
    clientTools: Object.keys(clientTools),
  })
}

/** Starts the engine with the first event: then also an engine that throws at once ends as others do. */
async function* runEngine(engine: Engine, turn: Turn, context: EngineContext): TurnEvents {
  return yield* engine.run(turn, context)
}

/** Puts what is attached to messages where the engine can read it. The thread keeps what the user sent. */
async function* tellAttachments(turn: Turn, files: EngineContext['environment']['files']) {
  const messages = yield* withAttachments([...turn.history, ...turn.prompt], files)
  const { length } = turn.history
  return { ...turn, history: messages.slice(0, length), prompt: messages.slice(length) }
}

function openModel({ db, gateway, backends }: Runtime, chat: ChatTurn, runId: string) {
  const { agent, sandbox, threadId, keyId, turn } = chat
  const { continues } = turn
  const replyId = continues?.isLate ? undefined : continues?.reply.id
  const hasOwnEgress = backends.get(sandbox.backend)?.egress === 'own'
  return gateway.open({
    teamId: sandbox.teamId,
    agentSlug: agent.slug,
    sandboxId: sandbox.id,
    threadId,
    runId,
    ...(replyId !== undefined && { replyId }),
    budgets: withRaises(db, chat.budgets, { ...sandbox, agentSlug: agent.slug }, replyId),
    inside: { environmentId: sandbox.environmentId, via: hasOwnEgress ? 'public' : 'relay' },
    ...(keyId !== undefined && { keyId }),
    ...(turn.model !== undefined && { model: turn.model }),
  })
}

/** Adds a turn's notices and its failure to the agent's log. */
const logged = (events: TurnEvents, addLine: AddLine): TurnEvents =>
  mapTurn(
    events,
    event => {
      if (event.type === 'notice')
        addLine({ source: 'engine', level: event.level, text: `${event.code}: ${event.text}` })
      return event
    },
    ({ error }) => error && addLine({ source: 'engine', level: 'error', text: error.message }),
  )
