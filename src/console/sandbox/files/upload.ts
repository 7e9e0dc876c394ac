import { refusalOf } from '../../api/client.ts'
import { rawUrl } from './paths.ts'

export interface Upload {
  path: string
  name: string
  /** The uploaded part, from 0 to 1. */
  part: number
}

/** Sends a file of any size. It uses an XMLHttpRequest because `fetch` does not report the progress of a body. */
export function uploadFile(
  sandboxId: string,
  path: string,
  file: File,
  progress: (part: number) => void,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const request = new XMLHttpRequest()
  request.open('POST', rawUrl(sandboxId, path))
  request.setRequestHeader('content-type', 'application/octet-stream')
  request.upload.onprogress = ({ loaded, total }) => progress(total > 0 ? loaded / total : 1)
  request.onerror = () => reject(new Error('The connection was lost.'))
  request.onload = () => {
    if (request.status < 300) return resolve()
    void refusalOf(new Response(request.responseText, { status: request.status })).then(reject)
  }
  request.send(file)
  return promise
}
