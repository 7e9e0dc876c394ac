import { useMutation } from '@tanstack/react-query'
import { type KeyboardEvent, useRef, useState } from 'react'
import { Problem } from '../parts/problem.tsx'
import { readFiles } from './read-files.ts'
import type { Draft } from './transport.ts'

export interface ComposerProps {
  isBusy: boolean
  send: (draft: Draft) => void
  sendBeside: (whenBusy: 'queue' | 'steer', draft: Draft) => Promise<void>
  cancel: () => Promise<void>
}

/** Where a message is written. While a reply is under way it can wait for its turn, or go to the agent at once. */
export function Composer({ isBusy, send, sendBeside, cancel }: ComposerProps) {
  const [text, setText] = useState('')
  const [files, setFiles] = useState<File[]>([])
  const picker = useRef<HTMLInputElement>(null)
  const isEmpty = text.trim() === '' && files.length === 0
  const sending = useMutation({
    mutationFn: async (how: 'now' | 'queue' | 'steer') => {
      const draft = { text, files: await readFiles(files) }
      if (how === 'now') send(draft)
      else await sendBeside(how, draft)
      setText('')
      setFiles([])
    },
  })
  const stopping = useMutation({ mutationFn: cancel })
  const problem = sending.error ?? stopping.error
  const press = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing || isEmpty) return
    event.preventDefault()
    sending.mutate(isBusy ? 'queue' : 'now')
  }

  return (
    <form
      className="composer card stack"
      onSubmit={event => {
        event.preventDefault()
        if (!isEmpty) sending.mutate(isBusy ? 'queue' : 'now')
      }}
    >
      {problem && <Problem error={problem} />}
      <label className="visually-hidden" htmlFor="message">
        Message
      </label>
      <textarea
        id="message"
        rows={2}
        placeholder="Message the agent. Enter sends, Shift and Enter begin a new line."
        value={text}
        onChange={event => setText(event.target.value)}
        onKeyDown={press}
      />
      {files.length > 0 && (
        <ul className="row plain" aria-label="Attached files">
          {files.map(file => (
            <li key={`${file.name} ${file.lastModified}`} className="badge">
              {file.name}
              <button
                type="button"
                className="quiet small"
                aria-label={`Take ${file.name} away`}
                onClick={() => setFiles(files.filter(each => each !== file))}
              >
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
      <div className="row">
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Files to attach"
          onChange={event => {
            setFiles([...files, ...(event.target.files ?? [])])
            event.target.value = ''
          }}
        />
        <button type="button" className="quiet" onClick={() => picker.current?.click()}>
          Attach
        </button>
        <span className="grow" />
        {isBusy ? (
          <>
            <button type="button" disabled={isEmpty} onClick={() => sending.mutate('steer')}>
              Steer
            </button>
            <button type="submit" disabled={isEmpty}>
              Queue
            </button>
            <button type="button" className="danger" disabled={stopping.isPending} onClick={() => stopping.mutate()}>
              Stop
            </button>
          </>
        ) : (
          <button type="submit" className="primary" disabled={isEmpty || sending.isPending}>
            Send
          </button>
        )}
      </div>
    </form>
  )
}
