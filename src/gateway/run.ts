import type { BudgetSpender, RunBudgets } from './budgets.ts'

/** A run that may call a model: whom it is for, and what its calls may be. */
export interface GatewayRun extends BudgetSpender {
  /** `provider/model`. */
  model: string
  budgets: RunBudgets
  inside: Inside
}

/** Which environment's processes may use a run's token, and by which way. The server itself always may. */
export interface Inside {
  environmentId: string
  /** `relay`: the proxy's own address in that environment. `public`: this server's public URL. */
  via: 'relay' | 'public'
}
