import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Part } from '../part.ts'
import { cpuSeconds } from '../process-figures.ts'
import { MIB, speed, time } from '../time.ts'
import { transfer } from '../transfer.ts'

/** A path on the sandbox's own disk. */
const PATH = '/home/user/threadbox-bench'

/** Measures how fast a large file goes into a sandbox and out of it. */
export const bytes: Part = {
  rounds: 2,
  async measure({ sizes, place, peer, record }) {
    await using server = await place.serve()
    const sandbox = await server.create()
    await server.exec(sandbox)
    const count = sizes.fileMib * MIB
    const gib = sizes.fileMib / 1024
    const path = `/v1/sandboxes/${sandbox.id}/files?path=${PATH}&format=stream`
    const copy = join(place.directory, 'bench-file')

    const cat = await time(() => Bun.$`head -c ${count} /dev/zero | cat > ${copy}`)
    const beforeUpload = cpuSeconds(server.pid)
    const headers = { 'content-type': 'application/octet-stream' }
    const upload = await time(() => server.transfer(path, { method: 'POST', headers, body: { bytes: count } }))
    record('upload-cpu', [(cpuSeconds(server.pid) - beforeUpload) / gib])
    record('upload', [speed(count, upload)], [speed(count, cat)])

    const bare = await time(() => whole(transfer(`${peer.url}/file?path=${copy}`), count))
    const beforeDownload = cpuSeconds(server.pid)
    const download = await time(() => whole(server.transfer(path), count))
    record('download-cpu', [(cpuSeconds(server.pid) - beforeDownload) / gib])
    record('download', [speed(count, download)], [speed(count, bare)])

    await server.delete(sandbox)
    await rm(copy)
  },
}

/** Throws when fewer bytes came than expected. */
async function whole(answer: ReturnType<typeof transfer>, count: number): Promise<void> {
  const { bytes: came } = await answer
  if (came < count) throw new Error(`${came} bytes of ${count} came`)
}
