import { openSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { type Descriptor, ownDescriptor } from '../../../src/descriptor.ts'
import { SYSTEM_PATH } from '../host/run-program.ts'
import { IDS_PER_JAIL } from '../host/user-ids.ts'

/**
 * Makes a user namespace that maps ids from 0 to ids from `firstId`. A process holds it for a moment; then it lives as long as
 * the descriptor.
 */
export async function openUserNamespace(firstId: number): Promise<Descriptor> {
  // The printed line says that unshare is done. The shell then waits for its standard input to end.
  const holder = Bun.spawn(['unshare', '--user', '--', '/bin/sh', '-c', 'echo; read _'], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
    env: { PATH: SYSTEM_PATH },
    lazy: true,
  })
  try {
    const reader = holder.stdout.getReader()
    const first = await reader.read()
    if (first.done) throw new Error((await new Response(holder.stderr).text()).trim() || 'unshare --user failed')
    const map = `0 ${firstId} ${IDS_PER_JAIL}`
    await writeFile(`/proc/${holder.pid}/uid_map`, map)
    await writeFile(`/proc/${holder.pid}/gid_map`, map)
    return ownDescriptor(openSync(`/proc/${holder.pid}/ns/user`, 'r'))
  } finally {
    holder.kill('SIGKILL')
  }
}
