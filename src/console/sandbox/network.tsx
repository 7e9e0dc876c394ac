import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, type Schemas, take } from '../api/client.ts'
import { Problem } from '../parts/problem.tsx'
import { Decisions } from './decisions.tsx'

interface Rules {
  networkAllowOut: string[] | null
  networkDenyOut: string[]
}

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean)

/** Shows what the sandbox may reach, and what was refused. */
export default function Network({ sandbox: { id, network } }: { sandbox: Schemas['Sandbox'] }) {
  const queries = useQueryClient()
  const [isNarrow, setNarrow] = useState(network.allowOut !== null)
  const [allowed, setAllowed] = useState((network.allowOut ?? []).join('\n'))
  const [denied, setDenied] = useState(network.denyOut.join('\n'))
  const saving = useMutation({
    mutationFn: (body: Rules) =>
      take(api.PATCH('/v1/sandboxes/{sandboxId}', { params: { path: { sandboxId: id } }, body: { ...body } })),
    onSuccess: () =>
      Promise.all([
        queries.invalidateQueries({ queryKey: ['sandbox', id] }),
        queries.invalidateQueries({ queryKey: ['decisions', id] }),
      ]),
  })
  const { agentAllowOut } = network
  /**
   * Moves a refused target to the allowed ones. It starts from the rules that apply now: the form's content may be older, or not sent
   * yet.
   */
  const allow = (rule: string) => {
    const allowOut = network.allowOut && [...network.allowOut.filter(line => line !== rule), rule]
    const denyOut = network.denyOut.filter(line => line !== rule)
    setNarrow(allowOut !== null)
    setAllowed((allowOut ?? []).join('\n'))
    setDenied(denyOut.join('\n'))
    saving.mutate({ networkAllowOut: allowOut, networkDenyOut: denyOut })
  }
  return (
    <div className="stack">
      <Decisions sandboxId={id} network={network} allow={allow} />
      <form
        className="card stack"
        onSubmit={event => {
          event.preventDefault()
          saving.mutate({ networkAllowOut: isNarrow ? linesOf(allowed) : null, networkDenyOut: linesOf(denied) })
        }}
      >
        <h2>Rules</h2>
        {agentAllowOut && <p className="hint">The agent’s own list must allow too: {agentAllowOut.join(', ')}</p>}
        <label className="row">
          <input type="checkbox" checked={isNarrow} onChange={event => setNarrow(event.target.checked)} />
          Only what is on a list
        </label>
        {isNarrow && (
          <label className="field">
            <span>Allowed, one a line, as *.example.com:443</span>
            <textarea className="mono" rows={4} value={allowed} onChange={event => setAllowed(event.target.value)} />
          </label>
        )}
        <label className="field">
          <span>Refused, one a line</span>
          <textarea className="mono" rows={3} value={denied} onChange={event => setDenied(event.target.value)} />
        </label>
        {saving.error && <Problem error={saving.error} />}
        <div className="row">
          <button type="submit" className="primary" disabled={saving.isPending}>
            Apply
          </button>
          {saving.isSuccess && <span role="status">It holds from now on.</span>}
        </div>
      </form>
    </div>
  )
}
