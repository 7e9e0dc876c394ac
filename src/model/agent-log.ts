/** One line of what happened to an agent and its sandboxes. Never a secret. */
export interface AgentLog {
  at: string
  source: 'deploy' | 'setup' | 'tools' | 'engine'
  level: 'info' | 'warn' | 'error'
  sandboxId?: string
  text: string
}
