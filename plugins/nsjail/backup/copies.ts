import { existsSync } from 'node:fs'
import { link, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { SandboxCopies } from '../../../src/plugin-api/index.ts'
import { getSnapshotPaths } from '../host/layout.ts'
import { takeSnapshot } from './snapshot.ts'
import { findForeignBase, packTree } from './trees.ts'

const FILES = ['meta.json', 'disk.img', 'box.tar']

/** What backups copy of the sandboxes and snapshots of a data directory. */
export const nsjailCopies = (dataDirectory: string): SandboxCopies => ({
  async snapshot(id, to) {
    const { frozenMs } = await takeSnapshot(dataDirectory, id, to)
    const base = await findForeignBase(dataDirectory, id)
    const files = FILES.map(name => ({ name: `sandboxes/${id}/${name}`, from: join(to, name) }))
    return {
      files: files.filter(({ from }) => existsSync(from)),
      frozenMs,
      ...(base !== undefined && { note: `its base ${base} is not in the backup: put it there` }),
    }
  },
  async copySnapshot(id, to) {
    const paths = getSnapshotPaths(dataDirectory, id)
    if (!existsSync(paths.record)) throw new Error('it is being removed')
    await mkdir(to, { mode: 0o700 })
    // A snapshot's files do not change, but it may be removed meanwhile.
    await link(paths.record, join(to, 'meta.json'))
    if (existsSync(paths.image)) await link(paths.image, join(to, 'disk.img'))
    else await packTree(paths.diskDirectory, join(to, 'box.tar'))
    const files = FILES.map(name => ({ name: `snapshots/${id}/${name}`, from: join(to, name) }))
    return { files: files.filter(({ from }) => existsSync(from)) }
  },
})
