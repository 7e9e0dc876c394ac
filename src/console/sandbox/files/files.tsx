import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type DragEvent, useRef, useState } from 'react'
import { api, take } from '../../api/client.ts'
import { Empty } from '../../parts/empty.tsx'
import { Problem } from '../../parts/problem.tsx'
import { FileRow } from './file-row.tsx'
import { FileView } from './file-view.tsx'
import { joinPath, parentsOf } from './paths.ts'
import { type Upload, uploadFile } from './upload.ts'

const HOME = '/home/user'
/** The page draws this many entries at once: thousands would block it. */
const STEP = 200

/** Shows the files of a sandbox: one directory, and one file beside it. */
export default function Files({ sandboxId }: { sandboxId: string }) {
  const [directory, setDirectory] = useState(HOME)
  const [shown, setShown] = useState(STEP)
  const [opened, setOpened] = useState<string>()
  const [uploads, setUploads] = useState<readonly Upload[]>([])
  const [isOver, setOver] = useState(false)
  const picker = useRef<HTMLInputElement>(null)
  const queries = useQueryClient()
  const key = ['files', sandboxId, directory]
  const list = useQuery({
    queryKey: key,
    queryFn: () =>
      take(
        api.GET('/v1/sandboxes/{sandboxId}/files/list', {
          params: { path: { sandboxId }, query: { path: directory } },
        }),
      ),
  })
  const go = (path: string) => {
    setDirectory(path)
    setShown(STEP)
  }
  const refresh = () => queries.invalidateQueries({ queryKey: ['files', sandboxId] })
  const uploading = useMutation({
    mutationFn: async (files: readonly File[]) => {
      for (const file of files) {
        const path = joinPath(directory, file.name)
        const show = (part: number) =>
          setUploads(all => [...all.filter(each => each.path !== path), { path, name: file.name, part }])
        show(0)
        await uploadFile(sandboxId, path, file, show).finally(() =>
          setUploads(all => all.filter(each => each.path !== path)),
        )
        await refresh()
      }
    },
  })
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setOver(false)
    uploading.mutate([...event.dataTransfer.files])
  }
  const entries = [...(list.data ?? [])].sort(
    (a, b) => Number(b.type === 'dir') - Number(a.type === 'dir') || a.name.localeCompare(b.name),
  )
  const problem = list.error ?? uploading.error

  return (
    <div className="files">
      {/* biome-ignore lint/a11y/noStaticElementInteractions: files can also be chosen by the button */}
      <div
        className={`stack card ${isOver ? 'over' : ''}`}
        onDragOver={event => {
          event.preventDefault()
          setOver(true)
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        <div className="row spread">
          <nav aria-label="Directory" className="row crumbs">
            {parentsOf(directory).map(({ name, path }) => (
              <button key={path} type="button" className="quiet small" onClick={() => go(path)}>
                {name}
              </button>
            ))}
          </nav>
          <button type="button" onClick={() => picker.current?.click()}>
            Upload
          </button>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            aria-label="Files to upload"
            onChange={event => {
              uploading.mutate([...(event.target.files ?? [])])
              event.target.value = ''
            }}
          />
        </div>
        {uploads.map(({ path, name, part }) => (
          <label key={path} className="field">
            <span>{name}</span>
            <progress value={part} max={1} />
          </label>
        ))}
        {problem && <Problem error={problem} retry={() => void refresh()} />}
        {list.isSuccess && entries.length === 0 && (
          <Empty title="This directory is empty">Drop files here to upload them.</Empty>
        )}
        <ul className="plain" aria-label={`Files in ${directory}`}>
          {entries.slice(0, shown).map(file => (
            <FileRow
              key={file.path}
              sandboxId={sandboxId}
              file={file}
              isOpened={opened === file.path}
              open={() => (file.type === 'dir' ? go(file.path) : setOpened(file.path))}
              refresh={refresh}
            />
          ))}
        </ul>
        {entries.length > shown && (
          <button type="button" onClick={() => setShown(shown + STEP)}>
            Show {Math.min(STEP, entries.length - shown)} more of {entries.length.toLocaleString('en')}
          </button>
        )}
      </div>
      {opened !== undefined && (
        <FileView key={opened} sandboxId={sandboxId} path={opened} close={() => setOpened(undefined)} />
      )}
    </div>
  )
}
