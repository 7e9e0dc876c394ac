import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, take } from '../api/client.ts'
import { Confirm } from '../parts/confirm.tsx'
import { Empty } from '../parts/empty.tsx'
import { Problem } from '../parts/problem.tsx'
import { Scroll } from '../parts/scroll.tsx'
import { Time } from '../parts/time.tsx'

type Secret = Awaited<ReturnType<typeof listSecrets>>['secrets'][number]

const listSecrets = () => take(api.GET('/v1/secrets'))

/** Lists the team's secrets by name. No value comes to the page. */
export function Secrets() {
  const queries = useQueryClient()
  const secrets = useQuery({ queryKey: ['secrets'], queryFn: listSecrets })
  const remove = (name: string) =>
    take(api.DELETE('/v1/secrets/{name}', { params: { path: { name } } })).then(() =>
      queries.invalidateQueries({ queryKey: ['secrets'] }),
    )
  return (
    <div className="stack">
      <NewValue />
      {secrets.error && <Problem error={secrets.error} retry={() => void secrets.refetch()} />}
      {secrets.data?.secrets.length === 0 ? (
        <Empty title="No secrets yet">
          Agents and sandboxes use a secret at the hosts that they bind it to, without having it.
        </Empty>
      ) : (
        <SecretTable secrets={secrets.data?.secrets ?? []} remove={remove} />
      )}
    </div>
  )
}

function SecretTable({ secrets, remove }: { secrets: readonly Secret[]; remove: (name: string) => Promise<unknown> }) {
  return (
    <Scroll label="Secrets" className="card">
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Agents</th>
            <th scope="col">Sandboxes</th>
            <th scope="col" className="wide">
              Set
            </th>
            <th scope="col">
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {secrets.map(({ name, agents, sandboxes, updatedAt }) => (
            <tr key={name}>
              <th scope="row" className="mono">
                {name}
              </th>
              <td>{agents.join(', ') || '–'}</td>
              <td>{sandboxes}</td>
              <td className="wide">
                <Time at={updatedAt} />
              </td>
              <td>
                <Confirm
                  title={`Remove the secret ${name}?`}
                  description="No sandbox can use it from then on, and no agent that binds it can make one."
                  action="Remove"
                  run={() => remove(name)}
                >
                  Remove
                </Confirm>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

/** Sets a secret, which is not shown again. */
function NewValue() {
  const queries = useQueryClient()
  const [name, setName] = useState('')
  const [value, setValue] = useState('')
  const setting = useMutation({
    mutationFn: () => take(api.PUT('/v1/secrets/{name}', { params: { path: { name } }, body: { value } })),
    onSuccess: () => {
      setName('')
      setValue('')
      return queries.invalidateQueries({ queryKey: ['secrets'] })
    },
  })
  return (
    <form
      className="card row"
      autoComplete="off"
      onSubmit={event => {
        event.preventDefault()
        setting.mutate()
      }}
    >
      <label className="field grow">
        <span>Name of a secret</span>
        <input
          required
          maxLength={100}
          pattern="[A-Za-z0-9][A-Za-z0-9_.\-]*"
          title="Letters, digits and -_."
          value={name}
          onChange={event => setName(event.target.value)}
        />
      </label>
      <label className="field grow">
        <span>Value, which is not shown again</span>
        <input
          type="password"
          required
          minLength={4}
          maxLength={65_536}
          autoComplete="new-password"
          value={value}
          onChange={event => setValue(event.target.value)}
        />
      </label>
      <button type="submit" className="primary" disabled={setting.isPending}>
        Set
      </button>
      {setting.error && <Problem error={setting.error} />}
    </form>
  )
}
