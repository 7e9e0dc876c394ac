import { Link } from 'wouter'
import type { Schemas } from '../api/client.ts'
import { Empty } from '../parts/empty.tsx'
import { Status } from '../parts/status.tsx'
import { Time } from '../parts/time.tsx'

/** Shows the sandbox's conversations, and how it is confined. */
export function About({ sandbox }: { sandbox: Schemas['Sandbox'] }) {
  const { id, threads, isolation, provider, createdAt, cwd, variables, secrets } = sandbox
  return (
    <div className="stack">
      {threads.length === 0 && <Empty title="No threads yet">A new chat begins one.</Empty>}
      {threads.length > 0 && (
        <ul className="plain card" aria-label="Threads">
          {threads.map(thread => (
            <li key={thread.id}>
              <Link href={`/sandboxes/${id}/threads/${thread.id}`} className="item">
                <span className="grow cut">{thread.name ?? 'Without a name'}</span>
                <Status of={thread.status} />
              </Link>
            </li>
          ))}
        </ul>
      )}
      <section className="card stack" aria-labelledby="environment">
        <h2 id="environment">Environment</h2>
        <p>
          Commands begin in <code>{cwd}</code>.
        </p>
        {variables && variables.length > 0 ? (
          <ul className="row plain" aria-label="Names of variables">
            {variables.map(name => (
              <li key={name}>
                <code>{name}</code>
              </li>
            ))}
          </ul>
        ) : (
          <p className="hint">{variables ? 'It has no variables of its own.' : 'Its variables cannot be read.'}</p>
        )}
      </section>
      {secrets && secrets.length > 0 && (
        <section className="card stack" aria-labelledby="secrets">
          <h2 id="secrets">Secrets</h2>
          <p className="hint">Its programs use them at these hosts, and do not have them.</p>
          <ul className="plain stack" aria-labelledby="secrets">
            {secrets.map(binding => (
              <li key={JSON.stringify(binding)}>
                <code>{binding.secret}</code> at {binding.hosts.join(', ')}, {placeOf(binding)}
              </li>
            ))}
          </ul>
        </section>
      )}
      <section className="card stack" aria-labelledby="confinement">
        <h2 id="confinement">What confines it</h2>
        <p>
          {provider}
          {isolation.kind && `, ${isolation.kind}`}, made <Time at={createdAt} />
        </p>
        <ul className="bullets">
          {isolation.details.map(detail => (
            <li key={detail}>{detail}</li>
          ))}
        </ul>
      </section>
    </div>
  )
}

/** Describes in words how a binding uses the value. */
function placeOf({ as, methods, paths }: Schemas['SecretBinding']): string {
  const { header, query, env, ssh } = as
  let place = 'as a password'
  if (typeof header === 'string') place = `in the header ${header}`
  if (typeof query === 'string') place = `in the query as ${query}`
  if (typeof env === 'string') place = `by the variable ${env}`
  if (ssh) place = 'for logins by SSH'
  const bounds = [...(methods ?? []), ...(paths ?? [])]
  return bounds.length > 0 ? `${place}, for ${bounds.join(' ')}` : place
}
