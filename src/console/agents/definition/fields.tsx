import { type ReactNode, useId, useState } from 'react'
import type { Fault } from '../../api/client.ts'

/** A definition that is being edited. */
export interface Editing {
  valueAt: (path: string) => unknown
  set: (path: string, value: unknown) => void
  faults: readonly Fault[]
}

export interface FieldProps {
  editing: Editing
  /** The path of a field, such as `options.maxTurns`. */
  path: string
  label: string
  hint?: string
}

/** Whether what is wrong is in this field, or in a part of it. */
export const isWithin = ({ field }: Fault, path: string): boolean => field === path || field.startsWith(`${path}.`)

interface Described {
  'aria-describedby': string | undefined
  'aria-invalid': boolean
}

function Field({
  editing,
  path,
  label,
  hint,
  children,
}: FieldProps & { children: (described: Described) => ReactNode }) {
  const id = useId()
  const fault = editing.faults.find(each => isWithin(each, path))
  const describing = [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(' ')
  return (
    <div className="stack field-of-agent">
      {/* biome-ignore lint/a11y/noLabelWithoutControl: the control is what `children` draws */}
      <label className="field">
        <span>{label}</span>
        {children({ 'aria-describedby': describing || undefined, 'aria-invalid': fault !== undefined })}
      </label>
      {hint && (
        <p id={`${id}-hint`} className="hint">
          {hint}
        </p>
      )}
      {fault && (
        <p id={`${id}-fault`} className="fault">
          {fault.message}
        </p>
      )}
    </div>
  )
}

/** The text in a field, as long as it stands for the value: so spaces and empty lines stay while somebody types. */
function useTyped<Value>(value: Value, write: (value: Value) => string, read: (text: string) => unknown) {
  const [typed, setTyped] = useState('')
  const isSame = JSON.stringify(read(typed)) === JSON.stringify(value)
  return [isSame ? typed : write(value), setTyped] as const
}

const textOf = (value: unknown): string =>
  value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)

/** A line of text; empty, the field is left out unless it has to be there. */
export function LineField({ isNeeded = false, ...field }: FieldProps & { isNeeded?: boolean }) {
  const { editing, path } = field
  return (
    <Field {...field}>
      {described => (
        <input
          {...described}
          autoComplete="off"
          value={textOf(editing.valueAt(path))}
          onChange={({ target: { value } }) => editing.set(path, value === '' && !isNeeded ? undefined : value)}
        />
      )}
    </Field>
  )
}

export function TextField({ rows, ...field }: FieldProps & { rows: number }) {
  const { editing, path } = field
  return (
    <Field {...field}>
      {described => (
        <textarea
          {...described}
          rows={rows}
          value={textOf(editing.valueAt(path))}
          onChange={({ target: { value } }) => editing.set(path, value === '' ? undefined : value)}
        />
      )}
    </Field>
  )
}

/** A text that is not a number is sent as it is, and the server says what it must be. */
function readNumber(text: string): unknown {
  const trimmed = text.trim()
  if (trimmed === '') return undefined
  return Number.isFinite(Number(trimmed)) ? Number(trimmed) : text
}

export function NumberField(field: FieldProps) {
  const { editing, path } = field
  const [text, setTyped] = useTyped(editing.valueAt(path), textOf, readNumber)
  return (
    <Field {...field}>
      {described => (
        <input
          {...described}
          inputMode="decimal"
          autoComplete="off"
          value={text}
          onChange={({ target: { value } }) => {
            setTyped(value)
            editing.set(path, readNumber(value))
          }}
        />
      )}
    </Field>
  )
}

/** A list, a line for each. What lines cannot hold is edited in the JSON. */
export function LinesField({ isKept = false, ...field }: FieldProps & { isKept?: boolean }) {
  const { editing, path } = field
  const value = editing.valueAt(path)
  const list = Array.isArray(value) ? value : []
  const isPlain = (value === undefined || Array.isArray(value)) && list.every(each => isLine(each))
  const read = (text: string) => {
    const lines = text.split('\n').filter(line => line.trim() !== '')
    return lines.length > 0 || isKept ? lines : undefined
  }
  const [text, setTyped] = useTyped(value, () => list.join('\n'), read)
  return (
    <Field {...field} {...(!isPlain && { hint: 'One of them has several lines: edit them in the JSON.' })}>
      {described => (
        <textarea
          {...described}
          className="mono"
          rows={Math.min(8, Math.max(2, text.split('\n').length))}
          spellCheck={false}
          disabled={!isPlain}
          value={text}
          onChange={event => {
            setTyped(event.target.value)
            editing.set(path, read(event.target.value))
          }}
        />
      )}
    </Field>
  )
}

const isLine = (value: unknown): boolean => typeof value === 'string' && !value.includes('\n') && value.trim() !== ''

export function ChoiceField({ choices, unset, ...field }: FieldProps & { choices: readonly string[]; unset: string }) {
  const { editing, path } = field
  const value = textOf(editing.valueAt(path))
  const all = value === '' || choices.includes(value) ? choices : [...choices, value]
  return (
    <Field {...field}>
      {described => (
        <select
          {...described}
          value={value}
          onChange={event => editing.set(path, event.target.value === '' ? undefined : event.target.value)}
        >
          <option value="">{unset}</option>
          {all.map(each => (
            <option key={each}>{each}</option>
          ))}
        </select>
      )}
    </Field>
  )
}
