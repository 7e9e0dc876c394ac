import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Schemas } from '../../api/client.ts'

type Json = Record<string, unknown>

/** An unsaved definition of an agent: one text, which both the form and the JSON change. */
export interface Draft {
  /** The agent's revision when the draft was begun. */
  revision: string
  base: string
  text: string
  /** The last text that was a JSON object. */
  definition: Json
  /** Why the text is not a definition. */
  problem?: string
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

const order = ['slug', 'name', 'engine', 'model', 'systemPrompt', 'options', 'sandbox']

/** Writes a definition as an agent's file, with its fields in the API's order. */
export function textOf(definition: Json): string {
  const known = order.filter(name => Object.hasOwn(definition, name))
  const others = Object.keys(definition).filter(name => !order.includes(name))
  return JSON.stringify(Object.fromEntries([...known, ...others].map(name => [name, definition[name]])), null, 2)
}

function begin({ revision, definition }: Schemas['AgentDefinition']): Draft {
  const text = textOf(definition)
  return { revision, base: text, text, definition }
}

/**
 * The draft of an agent. It follows the agent until it is changed; then it stays as it is, also while another part of the
 * console is open.
 */
export function useDraft(shown: Schemas['AgentDefinition']) {
  const queries = useQueryClient()
  const queryKey = ['draft', shown.slug]
  const [draft, setDraft] = useState<Draft>(() => queries.getQueryData<Draft>(queryKey) ?? begin(shown))
  const isDirty = draft.text !== draft.base
  const change = (next: Draft) => {
    queries.setQueryData(queryKey, next)
    setDraft(next)
  }
  const follow = (agent = shown) => {
    queries.removeQueries({ queryKey })
    setDraft(begin(agent))
  }
  if (!isDirty && draft.revision !== shown.revision) setDraft(begin(shown))
  return {
    draft,
    isDirty,
    /** Somebody else has changed the agent since the draft was begun. */
    isBehind: isDirty && draft.revision !== shown.revision,
    /** Replaces the draft by the agent as it is, or as it was just saved. */
    follow,
    /** Keeps the draft, to be saved over the agent's present definition. */
    keep: () => change({ ...draft, revision: shown.revision, base: textOf(shown.definition) }),
    set: (path: string, value: unknown) => {
      const definition = withValue(draft.definition, path.split('.'), value)
      const { problem: _, ...rest } = draft
      change({ ...rest, definition, text: textOf(definition) })
    },
    type: (text: string) => {
      const { problem: _, ...rest } = draft
      change({ ...rest, text, ...parse(text) })
    },
  }
}

function parse(text: string): Pick<Draft, 'definition'> | Pick<Draft, 'problem'> {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? { definition: value } : { problem: 'This is JSON, but no object.' }
  } catch (error) {
    return { problem: `This is not JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
}

/** The value of a path, as `options.maxTurns`. */
export const valueAt = (definition: Json, path: string): unknown =>
  path.split('.').reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), definition)

/** Returns the object with a field set; undefined removes the field. */
function withValue(owner: Json, [name = '', ...rest]: readonly string[], value: unknown): Json {
  if (rest.length > 0) {
    const inner = owner[name]
    return { ...owner, [name]: withValue(isObject(inner) ? inner : {}, rest, value) }
  }
  if (value !== undefined) return { ...owner, [name]: value }
  const { [name]: _, ...others } = owner
  return others
}
