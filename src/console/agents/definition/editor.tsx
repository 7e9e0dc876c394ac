import { type KeyboardEvent, useEffect, useRef } from 'react'
import { RequestError, type Schemas } from '../../api/client.ts'
import { textOf, useDraft, valueAt } from './draft.ts'
import type { Editing } from './fields.tsx'
import { DefinitionForm, faultsElsewhere } from './form.tsx'
import { Json } from './json.tsx'
import { Overtaken } from './overtaken.tsx'
import { SaveBar } from './save-bar.tsx'
import { useSaving } from './use-saving.ts'

export interface EditorProps {
  shown: Schemas['AgentDefinition']
  isTrying: boolean
  /** Begins a chat with the agent as it was saved. */
  tryIt: () => void
}

/** A form with the JSON beside it, each changing the other. Saving makes a version. */
export function Editor({ shown, isTrying, tryIt }: EditorProps) {
  const form = useRef<HTMLFormElement>(null)
  const { draft, isDirty, isBehind, follow, keep, set, type } = useDraft(shown)
  const saving = useSaving(shown.slug, draft, follow)
  const { error } = saving
  const faults = error instanceof RequestError ? error.faults : []
  useEffect(() => {
    if (error) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
  }, [error])
  // The result of the last attempt does not apply to a changed draft.
  const changed = () => {
    if (!saving.isIdle) saving.reset()
  }
  const editing: Editing = {
    faults,
    valueAt: path => valueAt(draft.definition, path),
    set: (path, value) => {
      changed()
      set(path, value)
    },
  }
  const isBusy = saving.isPending || isTrying
  const canSave = isDirty && !draft.problem && !isBusy && !isBehind
  const saveByKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.current?.requestSubmit()
  }
  // Faults that belong to no field of the form. When the agent was changed meanwhile, the page explains more than the refusal.
  const unplaced = faults.length > 0 ? faultsElsewhere({ faults }) : error && !isBehind ? [error] : []
  const problems = unplaced.map(({ message }) => new Error(message))
  const saved = saving.isSuccess && !isDirty ? `Version ${saving.data.version} is saved. New sandboxes have it.` : ''
  const status = isDirty && !isBusy ? 'Not saved yet.' : saved
  return (
    <form
      ref={form}
      noValidate
      className="stack"
      aria-label="Definition"
      onKeyDown={saveByKey}
      onSubmit={event => {
        event.preventDefault()
        if (canSave) saving.mutate()
      }}
    >
      {isBehind && (
        <Overtaken
          before={draft.base}
          now={textOf(shown.definition)}
          takeTheirs={() => {
            changed()
            follow()
          }}
          keepMine={keep}
        />
      )}
      <div className="editor">
        <DefinitionForm editing={editing} isDisabled={draft.problem !== undefined} />
        <Json
          text={draft.text}
          problem={draft.problem}
          type={text => {
            changed()
            type(text)
          }}
        />
      </div>
      <SaveBar
        problems={problems}
        status={status}
        canSave={canSave}
        canDiscard={isDirty && !isBusy}
        saveAndTry={() => saving.mutate(undefined, { onSuccess: tryIt })}
        discard={() => {
          changed()
          follow()
        }}
      />
    </form>
  )
}
