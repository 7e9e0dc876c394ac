import { useQuery } from '@tanstack/react-query'
import { api, take } from '../../api/client.ts'
import { Diff } from '../../parts/diff.tsx'
import { Problem } from '../../parts/problem.tsx'

/** How many lines are shown around a change. */
const CONTEXT = 3

export interface ChangesProps {
  slug: string
  version: number
  /** The version to compare it with; without one all of it is new. */
  before: number | undefined
}

/** What a version of an agent has that the one before did not have. */
export function Changes({ slug, version, before }: ChangesProps) {
  const is = useVersion(slug, version)
  const was = useVersion(slug, before)
  const error = is.error ?? was.error
  if (error) return <Problem error={error} />
  if (!is.data || (before !== undefined && !was.data)) return <p className="hint">Loading…</p>
  const [now, then] = [split(is.data.definition), was.data ? split(was.data.definition) : { prompt: '', rest: '' }]
  const isSame = now.prompt === then.prompt && now.rest === then.rest
  return (
    <div className="stack changes">
      {now.prompt !== then.prompt && (
        <section className="stack">
          <h3>System prompt</h3>
          <Diff before={then.prompt} after={now.prompt} context={CONTEXT} />
        </section>
      )}
      {now.rest !== then.rest && (
        <section className="stack">
          <h3>Definition</h3>
          <Diff before={then.rest} after={now.rest} context={CONTEXT} />
        </section>
      )}
      {isSame && <p className="hint">Nothing that is shown: its code, or a value that is kept.</p>}
    </div>
  )
}

/** A version never changes. */
const useVersion = (slug: string, version: number | undefined) =>
  useQuery({
    queryKey: ['version', slug, version],
    queryFn: () => {
      const params = { path: { slug }, query: { version: `${version}` } }
      return take(api.GET('/v1/agents/{slug}/definition', { params }))
    },
    enabled: version !== undefined,
    staleTime: Infinity,
  })

/** The prompt as the text that it is, beside the rest as JSON. */
function split({ systemPrompt = '', ...rest }: { systemPrompt?: string }) {
  return { prompt: systemPrompt, rest: JSON.stringify(rest, null, 2) }
}
