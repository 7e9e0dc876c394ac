import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, type Schemas, take } from '../../api/client.ts'
import { Problem } from '../../parts/problem.tsx'
import { Status } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'
import { Changes } from './changes.tsx'

const makers: Readonly<Record<Schemas['Deployment']['madeBy'], string>> = {
  deploy: 'deployed',
  edit: 'edited',
  apply: 'the operator’s file',
}

/** What an agent was after each change, with a way back. */
export function Versions({ slug }: { slug: string }) {
  const path = { slug }
  const queries = useQueryClient()
  const list = useQuery({
    queryKey: ['agent', slug, 'versions'],
    queryFn: () => take(api.GET('/v1/agents/{slug}/deployments', { params: { path } })),
  })
  const rolling = useMutation({
    mutationFn: (version: number) =>
      take(api.POST('/v1/agents/{slug}/rollback', { params: { path }, body: { version } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['agent', slug] }),
  })
  const versions = list.data?.deployments ?? []
  const problem = list.error ?? rolling.error
  return (
    <section className="card stack" aria-labelledby="versions">
      <h2 id="versions">Versions</h2>
      {problem && <Problem error={problem} />}
      {list.isSuccess && versions.length === 0 && (
        <p className="hint">It is as a file made it. Edits and deploys make versions.</p>
      )}
      <p role="status" className="visually-hidden">
        {rolling.data?.message}
      </p>
      <ul className="plain" aria-label="Versions">
        {versions.map((version, index) => (
          <Version
            key={version.id}
            slug={slug}
            version={version}
            before={versions[index + 1]?.version}
            isBusy={rolling.isPending}
            goBack={() => rolling.mutate(version.version)}
          />
        ))}
      </ul>
    </section>
  )
}

interface VersionProps {
  slug: string
  version: Pick<Schemas['Deployment'], 'version' | 'madeBy' | 'isActive' | 'deployedAt'>
  before: number | undefined
  isBusy: boolean
  goBack: () => void
}

function Version({ slug, version: { version, madeBy, isActive, deployedAt }, before, isBusy, goBack }: VersionProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <li className="version">
      <div className="row spread">
        <strong>Version {version}</strong>
        <span className="hint grow">
          {makers[madeBy]}, <Time at={deployedAt} />
        </span>
        {isActive ? (
          <Status of="completed" label="active" />
        ) : (
          <button type="button" disabled={isBusy} onClick={goBack}>
            Go back to version {version}
          </button>
        )}
      </div>
      <details onToggle={event => setOpen(event.currentTarget.open)}>
        <summary>{before === undefined ? 'What it was' : `What changed since version ${before}`}</summary>
        {isOpen && <Changes slug={slug} version={version} before={before} />}
      </details>
    </li>
  )
}
