import type { Cause } from '../../model/observation.ts'
import type { Runtime } from '../runtime.ts'

interface Work {
  teamId: string
  sandboxId: string
  execId?: string
  runId?: string
  pid?: number
  cause?: Cause
}

/** Records the text of a command, when the operator wants that. Observations do not contain it. */
export function noteCommand({ config, audit }: Runtime, work: Work, command: string | readonly string[]): void {
  if (!config.auditCommands) return
  const { teamId, cause, ...target } = work
  audit.record({ teamId, actor: { ...cause }, action: 'command', target, outcome: 'begun', detail: { command } })
}
