import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, take } from '../api/client.ts'
import type { paths } from '../api/schema.d.ts'
import { Confirm } from '../parts/confirm.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Empty } from '../parts/empty.tsx'
import { Problem } from '../parts/problem.tsx'
import { Scroll } from '../parts/scroll.tsx'
import { Status } from '../parts/status.tsx'
import { Time } from '../parts/time.tsx'

type Scope = NonNullable<
  NonNullable<paths['/v1/keys']['post']['requestBody']>['content']['application/json']['scopes']
>[number]

/** `admin` is absent, because keys without scopes have it. */
const scopeNames: Readonly<Record<Exclude<Scope, 'admin'>, string>> = {
  read: 'Look',
  chat: 'Chat and approve',
  sandboxes: 'Use sandboxes',
  deploy: 'Change agents',
  secrets: 'Set and bind secrets',
  metrics: 'Read figures',
}
const allScopes = Object.keys(scopeNames) as Scope[]

type Key = Awaited<ReturnType<typeof listKeys>>['keys'][number]

const listKeys = () => take(api.GET('/v1/keys'))

/** Lists the team's API keys. */
export function Keys() {
  const queries = useQueryClient()
  const keys = useQuery({ queryKey: ['keys'], queryFn: listKeys })
  const revoke = (keyId: string) =>
    take(api.DELETE('/v1/keys/{keyId}', { params: { path: { keyId } } })).then(() =>
      queries.invalidateQueries({ queryKey: ['keys'] }),
    )
  return (
    <div className="stack">
      <NewKey />
      {keys.error && <Problem error={keys.error} retry={() => void keys.refetch()} />}
      {keys.data?.keys.length === 0 ? (
        <Empty title="No keys yet">
          Programs send one with each request. The server’s own key is in its configuration.
        </Empty>
      ) : (
        <KeyTable keys={keys.data?.keys ?? []} revoke={revoke} />
      )}
    </div>
  )
}

function KeyTable({ keys, revoke }: { keys: readonly Key[]; revoke: (keyId: string) => Promise<unknown> }) {
  return (
    <Scroll label="API keys" className="card">
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">May</th>
            <th scope="col" className="wide">
              Made
            </th>
            <th scope="col">State</th>
            <th scope="col">
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {keys.map(({ id, name, hint, createdAt, expiresAt, revokedAt, scopes }) => (
            <tr key={id}>
              <th scope="row">
                {name}
                <p className="hint mono">…{hint}</p>
              </th>
              <td>{scopes?.join(', ') ?? 'everything'}</td>
              <td className="wide">
                <Time at={createdAt} />
              </td>
              <td>
                {revokedAt ? (
                  <Status of="cancelled" label="revoked" />
                ) : (
                  <Status of="completed" label={expiresAt ? 'expires' : 'valid'} />
                )}{' '}
                {!revokedAt && expiresAt && <Time at={expiresAt} />}
              </td>
              <td>
                {!revokedAt && (
                  <Confirm
                    title={`Revoke the key ${name}?`}
                    description="Programs that use it are refused from then on, and browsers that signed in with it are signed out."
                    action="Revoke"
                    run={() => revoke(id)}
                  >
                    Revoke
                  </Confirm>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

/** Makes a key, and shows it once. */
function NewKey() {
  const queries = useQueryClient()
  const [name, setName] = useState('')
  const [days, setDays] = useState('')
  const [scopes, setScopes] = useState<Scope[]>([])
  const making = useMutation({
    mutationFn: () =>
      take(
        api.POST('/v1/keys', {
          body: { name, ...(days && { expiresInDays: Number(days) }), ...(scopes.length > 0 && { scopes }) },
        }),
      ),
    onSuccess: () => {
      setName('')
      setScopes([])
      return queries.invalidateQueries({ queryKey: ['keys'] })
    },
  })
  return (
    <form
      className="card row"
      onSubmit={event => {
        event.preventDefault()
        making.mutate()
      }}
    >
      <label className="field grow">
        <span>Name of a new key</span>
        <input required maxLength={200} value={name} onChange={event => setName(event.target.value)} />
      </label>
      <label className="field">
        <span>Expires in days</span>
        <input
          type="number"
          min={1}
          max={99_999}
          placeholder="never"
          value={days}
          onChange={event => setDays(event.target.value)}
        />
      </label>
      <fieldset className="choices row">
        <legend>What it may do (nothing chosen: everything)</legend>
        {Object.entries(scopeNames).map(([scope, what]) => (
          <label key={scope} className="row">
            <input
              type="checkbox"
              checked={scopes.some(each => each === scope)}
              onChange={({ target }) =>
                setScopes(before => allScopes.filter(each => (each === scope ? target.checked : before.includes(each))))
              }
            />
            {what}
          </label>
        ))}
      </fieldset>
      <button type="submit" className="primary" disabled={making.isPending}>
        Make the key
      </button>
      {making.error && <Problem error={making.error} />}
      <Dialog
        title="The new key"
        description="It is shown only now. Keep it where secrets are kept."
        isOpen={making.isSuccess}
        close={making.reset}
      >
        <code className="secret">{making.data?.key}</code>
        <div className="row end">
          <button type="button" onClick={() => void navigator.clipboard?.writeText(making.data?.key ?? '')}>
            Copy
          </button>
          <button type="button" className="primary" onClick={making.reset}>
            Done
          </button>
        </div>
      </Dialog>
    </form>
  )
}
