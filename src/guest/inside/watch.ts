import { stat } from 'node:fs/promises'
import { excerpt } from '../../bounds.ts'
import { ownDescriptor } from '../../descriptor.ts'
import { type Call, lanes } from '../wire/call.ts'
import { GuestError } from '../wire/requests.ts'
import { full, type Inotify } from './inotify.ts'
import { assertNotOwnPath } from './own-files.ts'
import { createWatchedTree } from './watched-tree.ts'

/** Watches at once. An ordinary user's sandboxes share what the kernel allows that user. */
const MAX_WATCHES = 32

/**
 * Sends each change below a directory as a line of JSON, until the server ends the call or the directory is gone. The reply says
 * that all later changes will be seen. What the server does not read waits in the kernel's queue; beyond it the call fails.
 */
export async function watchDirectory(call: Call, root: string, isRecursive: boolean, inotify: Inotify): Promise<void> {
  await assertNotOwnPath(root)
  if (!(await stat(root)).isDirectory()) throw new GuestError('invalid_request', `Not a directory: ${excerpt(root)}`)
  if (inotify.openCount >= MAX_WATCHES) throw full()
  inotify.openCount++
  const descriptor = ownDescriptor(inotify.open())
  try {
    const tree = createWatchedTree(inotify, descriptor.number, root, isRecursive)
    const reader = Bun.file(descriptor.number).stream().getReader()
    call.answer({})
    const stop = () => void reader.cancel().catch(() => {})
    call.result.then(stop, stop)
    for (;;) {
      const { value, done } = await reader.read().catch(() => ({ value: undefined, done: true }))
      if (done || !value || call.isOver) return
      const changes = tree.read(Buffer.from(value.buffer, value.byteOffset, value.byteLength))
      if (changes.length > 0) {
        await call.send(lanes.down, Buffer.from(changes.map(change => `${JSON.stringify(change)}\n`).join('')))
      }
      if (!tree.isThere()) return
    }
  } finally {
    inotify.openCount--
    descriptor.close()
  }
}
