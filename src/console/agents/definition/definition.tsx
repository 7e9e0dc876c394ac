import { useQuery } from '@tanstack/react-query'
import { api, take } from '../../api/client.ts'
import { Problem } from '../../parts/problem.tsx'
import { Editor, type EditorProps } from './editor.tsx'

interface DefinitionProps extends Omit<EditorProps, 'shown'> {
  slug: string
}

/** Shows an agent's definition and lets the user edit it. */
export function Definition({ slug, ...trying }: DefinitionProps) {
  const definition = useQuery({
    queryKey: ['agent', slug, 'definition'],
    queryFn: () => take(api.GET('/v1/agents/{slug}/definition', { params: { path: { slug } } })),
  })
  if (definition.data) return <Editor shown={definition.data} {...trying} />
  if (definition.error) return <Problem error={definition.error} retry={() => void definition.refetch()} />
  return <p className="hint">Loading…</p>
}
