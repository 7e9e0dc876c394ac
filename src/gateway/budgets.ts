import type { Database } from 'bun:sqlite'
import { spentUsd } from '../db/model-calls.ts'
import type { Spender, SpentScope } from '../model/usage.ts'

/** What a run's calls may cost, in USD. Absent: no limit. */
export interface RunBudgets {
  /** For the run, and the runs before it that its reply is of. */
  maxBudgetUsd?: number
  /** For the run and all that its sandbox has spent before. */
  maxSandboxBudgetUsd?: number
  /** For the run and all that its agent has spent before, in every sandbox. */
  maxAgentBudgetUsd?: number
}

export const runBudgetNames = ['maxBudgetUsd', 'maxSandboxBudgetUsd', 'maxAgentBudgetUsd'] as const

/** The operator's own limits, in USD. Absent or 0: no limit. Days are of UTC. */
export interface OperatorBudgets {
  threadUsd?: number
  keyDayUsd?: number
  /** For the whole server. */
  dayUsd?: number
}

export type BudgetOwner = 'run' | 'sandbox' | 'agent' | 'thread' | 'key' | 'server'

interface Limit {
  owner: BudgetOwner
  scope: SpentScope
  usd: number
  /** Absent for a limit of the operator's. */
  budget?: keyof RunBudgets
}

/** Why a call may not be made: a budget is used up. */
export interface BudgetRefusal {
  reason: string
  /** The budget, when it is the agent's or the chat's, who may raise it. Absent for one of the operator's. */
  budget?: keyof RunBudgets
  limitUsd: number
  spentUsd: number
}

/** A budget that a call has used up. */
export interface ReachedBudget {
  owner: BudgetOwner
  limitUsd: number
  spentUsd: number
}

/** Explains it to a user, with the code first. */
export const explainRefusal = ({ reason }: BudgetRefusal): string => `budget_exceeded: ${reason}`

/** `replyId`: the run goes on with this reply of its thread, which other runs began. */
export type BudgetSpender = Spender & { replyId?: string }

/** Money that is held for a call that has not ended. */
export interface Reservation {
  release(): void
}

export interface Budgets {
  /**
   * Reserves the most that a call can cost, until `release`. A call that fits only if those in flight turn out cheaper
   * waits for one to end and is checked again: no two exceed a budget together, and no call is refused for money that is
   * not spent. Resolves to a refusal when a budget is used up. Rejects when `signal` aborts while it waits.
   */
  reserve(
    spender: BudgetSpender,
    budgets: RunBudgets,
    mostUsd: number,
    signal: AbortSignal,
  ): Promise<Reservation | BudgetRefusal>
  /**
   * Returns the budgets that this call has used up. The call is stored, and had this cost. Each budget is returned once, until it is
   * raised.
   */
  findReached(spender: BudgetSpender, budgets: RunBudgets, costUsd: number): ReachedBudget[]
}

export function createBudgets(db: Database, operator: OperatorBudgets): Budgets {
  const reservedUsd = new Map<string, number>()
  const waiting = new Set<() => void>()

  function addReserved(limits: readonly Limit[], usd: number): void {
    for (const { scope } of limits) {
      const key = JSON.stringify(scope)
      const held = (reservedUsd.get(key) ?? 0) + usd
      // Sums of floats end near zero, not at it.
      if (held > 1e-12) reservedUsd.set(key, held)
      else reservedUsd.delete(key)
    }
  }

  function check(limits: readonly Limit[]): BudgetRefusal | { isTight: boolean } {
    let isTight = false
    for (const { owner, scope, usd, budget } of limits) {
      const spent = spentUsd(db, scope)
      if (spent >= usd) {
        const reason = `${nameOf[owner]} has spent ${formatUsd(spent)} of its ${formatUsd(usd)}.`
        return { reason, limitUsd: usd, spentUsd: spent, ...(budget && { budget }) }
      }
      isTight ||= spent + (reservedUsd.get(JSON.stringify(scope)) ?? 0) >= usd
    }
    return { isTight }
  }

  const nextRelease = (signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const leave = () => {
        waiting.delete(wake)
        signal.removeEventListener('abort', fail)
      }
      const wake = () => {
        leave()
        resolve()
      }
      const fail = () => {
        leave()
        reject(signal.reason)
      }
      signal.throwIfAborted()
      waiting.add(wake)
      signal.addEventListener('abort', fail)
    })

  return {
    async reserve(spender, budgets, mostUsd, signal) {
      const limits = listLimits(spender, budgets, operator)
      for (;;) {
        const checked = check(limits)
        if ('reason' in checked) return checked
        if (!checked.isTight) break
        await nextRelease(signal)
      }
      addReserved(limits, mostUsd)
      return {
        release() {
          addReserved(limits, -mostUsd)
          for (const wake of [...waiting]) wake()
        },
      }
    },
    findReached: (spender, budgets, costUsd) =>
      listLimits(spender, budgets, operator).flatMap(({ owner, scope, usd: limitUsd }) => {
        const spent = spentUsd(db, scope)
        return spent >= limitUsd && spent - costUsd < limitUsd ? [{ owner, limitUsd, spentUsd: spent }] : []
      }),
  }
}

/** The names of budgets in messages. */
const nameOf: Readonly<Record<BudgetOwner, string>> = {
  run: 'The run',
  sandbox: 'The sandbox',
  agent: 'The agent',
  thread: 'The thread',
  key: 'The API key',
  server: 'The server',
}

function listLimits(spender: BudgetSpender, budgets: RunBudgets, operator: OperatorBudgets): Limit[] {
  const { teamId, keyId = null, agentSlug, sandboxId, threadId, runId, replyId } = spender
  // A turn that waited goes on in another run, with what its budget has left.
  const turn = replyId === undefined ? { runId } : { threadId, replyId }
  const from = new Date().toISOString().slice(0, 10)
  const all: [BudgetOwner, SpentScope, number | undefined, budget?: keyof RunBudgets][] = [
    ['run', turn, budgets.maxBudgetUsd, 'maxBudgetUsd'],
    ['sandbox', { sandboxId }, budgets.maxSandboxBudgetUsd, 'maxSandboxBudgetUsd'],
    ['agent', { teamId, agentSlug }, budgets.maxAgentBudgetUsd, 'maxAgentBudgetUsd'],
    ['thread', { threadId }, operator.threadUsd || undefined],
    ['key', { teamId, keyId, from }, operator.keyDayUsd || undefined],
    ['server', { from }, operator.dayUsd || undefined],
  ]
  return all.flatMap(([owner, scope, usd, budget]) =>
    usd === undefined ? [] : [{ owner, scope, usd, ...(budget && { budget }) }],
  )
}

const formatUsd = (usd: number) => `$${usd.toFixed(usd > 0 && usd < 0.1 ? 6 : 2)}`
