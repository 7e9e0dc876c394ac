import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, take } from '../api/client.ts'
import { Problem } from '../parts/problem.tsx'

/** Calls that people have approved for good. */
export function RememberedRules({ slug }: { slug: string }) {
  const queries = useQueryClient()
  const list = useQuery({
    queryKey: ['agent', slug, 'rules'],
    queryFn: () => take(api.GET('/v1/agents/{slug}/rules', { params: { path: { slug } } })),
  })
  const forgetting = useMutation({
    mutationFn: (ruleId: string) =>
      take(api.DELETE('/v1/agents/{slug}/rules/{ruleId}', { params: { path: { slug, ruleId } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['agent', slug, 'rules'] }),
  })
  const rules = list.data?.rules ?? []
  const problem = list.error ?? forgetting.error
  if (rules.length === 0 && !problem) return null
  return (
    <section className="card stack" aria-labelledby="rules">
      <h2 id="rules">Approved for good</h2>
      {problem && <Problem error={problem} />}
      <ul className="plain">
        {rules.map(({ id, rule, threadId }) => (
          <li key={id} className="row spread">
            <code className="wrap grow">{rule}</code>
            {threadId && <span className="hint">in one thread</span>}
            <button type="button" onClick={() => forgetting.mutate(id)}>
              Ask again
            </button>
          </li>
        ))}
      </ul>
    </section>
  )
}
