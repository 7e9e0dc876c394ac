const kinds = new Map(
  Object.entries({
    streaming: 'active',
    active: 'active',
    running: 'active',
    waiting: 'warn',
    pending: 'warn',
    completed: 'good',
    approved: 'good',
    error: 'bad',
    failed: 'bad',
    denied: 'bad',
    interrupted: 'bad',
  }),
)

/** Shows a state by its word and by its colour. */
export function Status({ of, label = of }: { of: string; label?: string }) {
  return <span className={`badge ${kinds.get(of) ?? ''}`}>{label}</span>
}

/** Shows what a sandbox is doing, as far as its backend knows. */
export function SandboxStatus({ of }: { of: { status: string; isRunning: boolean | null } }) {
  const isStopped = of.status === 'active' && of.isRunning === false
  return <Status of={isStopped ? 'stopped' : of.status} />
}
