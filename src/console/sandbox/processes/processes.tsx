import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, type Schemas, take } from '../../api/client.ts'
import { Empty } from '../../parts/empty.tsx'
import { Problem } from '../../parts/problem.tsx'
import { Status } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'
import { LiveOutput } from './live-output.tsx'

/** Shows the sandbox's background processes. */
export default function Processes({ sandboxId }: { sandboxId: string }) {
  const path = { sandboxId }
  const queries = useQueryClient()
  const [command, setCommand] = useState('')
  const [opened, setOpened] = useState<number>()
  const list = useQuery({
    queryKey: ['processes', sandboxId],
    queryFn: () => take(api.GET('/v1/sandboxes/{sandboxId}/processes', { params: { path } })),
  })
  const refresh = () => queries.invalidateQueries({ queryKey: ['processes', sandboxId] })
  const starting = useMutation({
    mutationFn: () => take(api.POST('/v1/sandboxes/{sandboxId}/processes', { params: { path }, body: { command } })),
    onSuccess: async ({ pid }) => {
      setCommand('')
      setOpened(pid)
      await refresh()
    },
  })
  const ending = useMutation({
    mutationFn: (pid: number) =>
      take(
        api.DELETE('/v1/sandboxes/{sandboxId}/processes/{pid}', { params: { path: { sandboxId, pid: String(pid) } } }),
      ),
    onSettled: refresh,
  })
  const problem = list.error ?? starting.error ?? ending.error
  const processes = list.data?.processes ?? []
  return (
    <div className="stack">
      <form
        className="card row"
        onSubmit={event => {
          event.preventDefault()
          starting.mutate()
        }}
      >
        <label className="field grow">
          <span>Command</span>
          <input required className="mono" value={command} onChange={event => setCommand(event.target.value)} />
        </label>
        <button type="submit" className="primary" disabled={starting.isPending}>
          Start
        </button>
      </form>
      {problem && <Problem error={problem} />}
      {list.isSuccess && processes.length === 0 && (
        <Empty title="No processes">A process goes on without a reader until it ends or the sandbox does.</Empty>
      )}
      <ul className="plain stack" aria-label="Processes">
        {processes.map(process => (
          <li key={process.pid} className="card stack">
            <Process {...process} />
            <div className="row">
              <button
                type="button"
                aria-expanded={opened === process.pid}
                onClick={() => setOpened(opened === process.pid ? undefined : process.pid)}
              >
                Output
              </button>
              <button type="button" className="danger" onClick={() => ending.mutate(process.pid)}>
                {process.status === 'running' ? 'Kill' : 'Forget'}
              </button>
            </div>
            {opened === process.pid && <LiveOutput sandboxId={sandboxId} pid={process.pid} />}
          </li>
        ))}
      </ul>
    </div>
  )
}

function Process({ pid, name, command, status, exitCode, startedAt }: Schemas['Process']) {
  return (
    <div className="row">
      <span className="badge">{pid}</span>
      <span className="grow">
        {name && <strong>{name} </strong>}
        <code className="wrap">{Array.isArray(command) ? command.join(' ') : String(command)}</code>
      </span>
      <Status of={status} label={exitCode === null ? status : `${status} with ${exitCode}`} />
      <span className="hint">
        <Time at={startedAt} />
      </span>
    </div>
  )
}
