import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, take } from '../api/client.ts'
import { Problem } from '../parts/problem.tsx'

/** The variables that new sandboxes get. Their values are never shown. */
export function Variables({ slug }: { slug: string }) {
  const path = { slug }
  const [name, setName] = useState('')
  const [value, setValue] = useState('')
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ queryKey: ['agent', slug, 'variables'] })
  const list = useQuery({
    queryKey: ['agent', slug, 'variables'],
    queryFn: () => take(api.GET('/v1/agents/{slug}/env', { params: { path } })),
  })
  const setting = useMutation({
    mutationFn: () => take(api.PUT('/v1/agents/{slug}/env', { params: { path }, body: { key: name, value } })),
    onSuccess: () => {
      setName('')
      setValue('')
      return refresh()
    },
  })
  const removing = useMutation({
    mutationFn: (key: string) => take(api.DELETE('/v1/agents/{slug}/env', { params: { path }, body: { key } })),
    onSuccess: refresh,
  })
  const problem = list.error ?? setting.error ?? removing.error
  return (
    <section className="card stack" aria-labelledby="variables">
      <h2 id="variables">Variables</h2>
      {problem && <Problem error={problem} />}
      <ul className="plain" aria-label="Names of variables">
        {list.data?.keys.map(key => (
          <li key={key} className="row spread">
            <code>{key}</code>
            <button type="button" className="quiet small danger" onClick={() => removing.mutate(key)}>
              Take {key} away
            </button>
          </li>
        ))}
      </ul>
      <form
        className="row"
        onSubmit={event => {
          event.preventDefault()
          setting.mutate()
        }}
      >
        <label className="field">
          <span>Name</span>
          <input
            required
            className="mono"
            pattern="[A-Za-z_][A-Za-z0-9_]*"
            value={name}
            onChange={event => setName(event.target.value)}
          />
        </label>
        <label className="field grow">
          <span>Value</span>
          <input type="password" autoComplete="off" value={value} onChange={event => setValue(event.target.value)} />
        </label>
        <button type="submit" disabled={setting.isPending}>
          Set
        </button>
      </form>
    </section>
  )
}
