import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api, type Schemas, take } from '../../api/client.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { bytes } from '../../parts/format.ts'
import { Menu } from '../../parts/menu.tsx'
import { Problem } from '../../parts/problem.tsx'
import { Time } from '../../parts/time.tsx'
import { rawUrl } from './paths.ts'

export interface FileRowProps {
  sandboxId: string
  file: Schemas['FileInfo']
  isOpened: boolean
  open: () => void
  refresh: () => Promise<unknown>
}

/** Shows one entry of a directory. */
export function FileRow({ sandboxId, file, isOpened, open, refresh }: FileRowProps) {
  const { name, path, type, size, modifiedTime } = file
  const [asked, setAsked] = useState<'rename' | 'delete'>()
  const [wanted, setWanted] = useState(path)
  const place = { params: { path: { sandboxId } } }
  const close = () => setAsked(undefined)
  const done = async () => {
    close()
    await refresh()
  }
  const deleting = useMutation({
    mutationFn: () =>
      take(api.DELETE('/v1/sandboxes/{sandboxId}/files', { params: { ...place.params, query: { path } } })),
    onSuccess: done,
  })
  const renaming = useMutation({
    mutationFn: () =>
      take(api.POST('/v1/sandboxes/{sandboxId}/files/rename', { ...place, body: { oldPath: path, newPath: wanted } })),
    onSuccess: done,
  })
  const problem = deleting.error ?? renaming.error
  return (
    <li className="file row">
      <button type="button" className="quiet grow name" aria-pressed={isOpened} onClick={open}>
        <span aria-hidden="true">{type === 'dir' ? '▸' : '·'}</span>
        <span className="cut">{name}</span>
        {type === 'dir' && <span className="visually-hidden">directory</span>}
      </button>
      <span className="hint">{type === 'dir' ? '' : bytes(size)}</span>
      <span className="hint when">
        <Time at={modifiedTime} />
      </span>
      <Menu
        label={`More about ${name}`}
        items={[
          {
            name: type === 'dir' ? 'Download as tar' : 'Download',
            select: () => {
              const href =
                type === 'dir'
                  ? `${rawUrl(sandboxId, path).replace('format=stream', 'format=tar')}`
                  : rawUrl(sandboxId, path)
              Object.assign(document.createElement('a'), {
                href,
                download: type === 'dir' ? `${name}.tar` : name,
              }).click()
            },
          },
          { name: 'Rename', select: () => setAsked('rename') },
          { name: 'Delete', isDanger: true, select: () => setAsked('delete') },
        ]}
      >
        <span aria-hidden="true">⋯</span>
      </Menu>
      <Dialog title={`Delete ${name}?`} isOpen={asked === 'delete'} close={close}>
        {problem && <Problem error={problem} />}
        <div className="row end">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="button" className="primary" disabled={deleting.isPending} onClick={() => deleting.mutate()}>
            Delete
          </button>
        </div>
      </Dialog>
      <Dialog title={`Rename ${name}`} isOpen={asked === 'rename'} close={close}>
        <form
          className="stack"
          onSubmit={event => {
            event.preventDefault()
            renaming.mutate()
          }}
        >
          <label className="field">
            <span>New path</span>
            <input required pattern="/.*" value={wanted} onChange={event => setWanted(event.target.value)} />
          </label>
          {problem && <Problem error={problem} />}
          <div className="row end">
            <button type="submit" className="primary" disabled={renaming.isPending}>
              Rename
            </button>
          </div>
        </form>
      </Dialog>
    </li>
  )
}
