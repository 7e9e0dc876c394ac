import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, take } from '../../api/client.ts'
import { Empty } from '../../parts/empty.tsx'
import { Problem } from '../../parts/problem.tsx'
import { Terminal } from './terminal.tsx'

/** Shows the shells of a sandbox, which outlive the page. */
export default function Terminals({ sandboxId }: { sandboxId: string }) {
  const path = { sandboxId }
  const queries = useQueryClient()
  const [chosen, setChosen] = useState<number>()
  const processes = useQuery({
    queryKey: ['processes', sandboxId],
    queryFn: () => take(api.GET('/v1/sandboxes/{sandboxId}/processes', { params: { path } })),
  })
  const refresh = () => queries.invalidateQueries({ queryKey: ['processes', sandboxId] })
  const opening = useMutation({
    mutationFn: () =>
      take(
        api.POST('/v1/sandboxes/{sandboxId}/processes', {
          params: { path },
          body: { command: ['sh', '-c', 'exec bash -l || exec sh'], pty: true, name: 'terminal' },
        }),
      ),
    onSuccess: async ({ pid }) => {
      setChosen(pid)
      await refresh()
    },
  })
  const closing = useMutation({
    mutationFn: (pid: number) =>
      take(
        api.DELETE('/v1/sandboxes/{sandboxId}/processes/{pid}', { params: { path: { sandboxId, pid: String(pid) } } }),
      ),
    onSettled: refresh,
  })
  const terminals = (processes.data?.processes ?? []).filter(({ pty }) => pty)
  const shown = terminals.find(({ pid }) => pid === chosen) ?? terminals[0]
  const problem = processes.error ?? opening.error ?? closing.error
  return (
    <div className="stack">
      <div className="row">
        {terminals.map(({ pid, name, status }) => (
          <button key={pid} type="button" aria-pressed={shown?.pid === pid} onClick={() => setChosen(pid)}>
            {name ?? 'terminal'} {pid}
            {status !== 'running' && <span className="badge">{status}</span>}
          </button>
        ))}
        <button type="button" className="primary" disabled={opening.isPending} onClick={() => opening.mutate()}>
          New terminal
        </button>
        {shown && (
          <button type="button" className="danger" onClick={() => closing.mutate(shown.pid)}>
            Close it
          </button>
        )}
      </div>
      {problem && <Problem error={problem} />}
      {processes.isSuccess && !shown && <Empty title="No terminal is open">It goes on when you leave the page.</Empty>}
      {shown && <Terminal key={shown.pid} sandboxId={sandboxId} pid={shown.pid} ended={refresh} />}
    </div>
  )
}
